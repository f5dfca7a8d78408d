#include "json_report.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace plan_model {
namespace {

using nlohmann::ordered_json;

[[nodiscard]] ordered_json rate(double bytes_per_second) {
  return std::isinf(bytes_per_second) ? ordered_json(nullptr) : ordered_json(bytes_per_second);
}

template <typename Value>
[[nodiscard]] ordered_json or_null(const std::optional<Value>& v) {
  return v ? ordered_json(*v) : ordered_json(nullptr);
}

[[nodiscard]] ordered_json model_json(const training& t) {
  const model_shape& m = t.model;
  return {{"name", m.name},
          {"family", m.kind == family::gpt ? "gpt" : "llama"},
          {"parameters", parameters(m)},
          {"layers", m.layers},
          {"width", m.width},
          {"heads", m.heads},
          {"kv_heads", m.kv_heads},
          {"mlp_width", m.mlp_width},
          {"vocabulary", m.vocabulary},
          {"context", m.context},
          {"batch", t.batch},
          {"micro_batches", t.micro_batches},
          {"dtype", t.type == forebay::dtype::bf16 ? "bf16" : "fp32"},
          {"optimizer", t.optimizer == optimizer_kind::adamw ? "adamw" : "sgd"},
          {"update", t.update == forebay::place::host ? "host" : "device"},
          {"recompute", t.again == recompute::none ? "none" : "all"},
          {"clip", t.clip}};
}

[[nodiscard]] ordered_json order_json(const forebay::plan::trace& t) {
  forebay::byte_count bytes = 0;
  for (const forebay::byte_count b : t.item_bytes) {
    bytes += b;
  }
  return {{"steps", t.steps.size()}, {"items", t.item_bytes.size()}, {"bytes", bytes}};
}

[[nodiscard]] ordered_json machine_json(const hardware& h) {
  ordered_json drives = ordered_json::array();
  for (const forebay::plan::storage_link& s : h.model.storage) {
    drives.push_back({{"read", rate(s.read_rate)}, {"write", rate(s.write_rate)}});
  }
  return {{"device_capacity", h.model.device_capacity},
          {"host_capacity", h.model.host_capacity},
          {"h2d", rate(h.model.h2d_rate)},
          {"d2h", rate(h.model.d2h_rate)},
          {"drives", drives},
          {"half_duplex_storage", h.model.half_duplex_storage},
          {"peak_flops", h.peak_flops},
          {"reached_flops", h.speed.flops},
          {"update_bytes_per_second", h.speed.update_bytes},
          {"device_update_bytes_per_second", h.speed.device_bytes},
          {"assumed", h.assumed}};
}

[[nodiscard]] ordered_json memory_json(const answer& a) {
  const prediction& p = a.predicted;
  const auto step = [&](const forebay::plan::tier_need& need) {
    return need.step ? ordered_json(p.work.step_names[*need.step]) : ordered_json(nullptr);
  };
  return {{"device_needs", p.needs.device.bytes},
          {"device_step", step(p.needs.device)},
          {"device_enough", or_null(a.enough_device)},
          {"host_needs", p.needs.host.bytes},
          {"host_step", step(p.needs.host)},
          {"host_enough", or_null(a.enough_host)},
          {"most_alive", p.most_alive},
          {"layers_per_step", static_cast<double>(p.cut.half_layers) / 2.0}};
}

[[nodiscard]] ordered_json unfit_json(const prediction& p) {
  ordered_json all = ordered_json::array();
  for (const shortage& s : p.shortages) {
    all.push_back({{"tier", s.tier}, {"reason", s.reason}, {"needs", s.needs}, {"has", s.has}});
  }
  return {{"shortages", all}, {"obstacle", p.obstacle}};
}

[[nodiscard]] ordered_json prediction_json(const answer& a) {
  const prediction& p = a.predicted;
  ordered_json charges = ordered_json::array();
  for (const charge& c : p.bound.charges) {
    charges.push_back({{"phases", c.phases}, {"resource", c.resource}, {"seconds", c.seconds}});
  }
  ordered_json links = ordered_json::array();
  for (const link_load& l : a.links) {
    links.push_back({{"link", l.link}, {"bytes", l.bytes}, {"busy", l.busy}});
  }
  ordered_json idle = ordered_json::object();
  for (const auto& [resource, seconds] : a.idle) {
    idle[resource] = seconds;
  }
  const bool trains = !a.asked.order;
  return {
      {"seconds", p.seconds()},
      {"tokens_per_second", trains ? ordered_json(tokens_per_second(a.asked, p)) : ordered_json(nullptr)},
      {"model_flops_utilisation", trains ? ordered_json(model_flops_utilisation(a.asked, p)) : ordered_json(nullptr)},
      {"bound_seconds", p.bound.seconds},
      {"predicted_over_bound", p.seconds() / p.bound.seconds},
      {"binding", p.bound.binding()},
      {"charges", charges},
      {"links", links},
      {"device_waits", idle}};
}

[[nodiscard]] ordered_json alternatives_json(const answer& a) {
  ordered_json all = ordered_json::array();
  for (const alternative& x : a.alternatives) {
    ordered_json row{{"what", x.change.what}, {"options", x.change.options}, {"fits", x.fits}};
    if (x.fits) {
      row["seconds"] = x.seconds;
      row["tokens_per_second"] = a.asked.order ? ordered_json(nullptr) : ordered_json(x.tokens_per_second);
      row["bound_seconds"] = x.bound_seconds;
      row["binding"] = x.binding;
    }
    all.push_back(std::move(row));
  }
  return all;
}

}  // namespace

std::string to_json(const answer& a) {
  ordered_json j{{"model", a.asked.order ? ordered_json(nullptr) : model_json(a.asked.what)},
                 {"order", a.asked.order ? order_json(*a.asked.order) : ordered_json(nullptr)},
                 {"machine", machine_json(a.asked.on)},
                 {"memory", memory_json(a)},
                 {"fits", a.predicted.fits()}};
  if (a.predicted.fits()) {
    j["prediction"] = prediction_json(a);
  } else {
    j["unfit"] = unfit_json(a.predicted);
  }
  j["what_if"] = alternatives_json(a);
  return j.dump(2) + '\n';
}

}  // namespace plan_model
