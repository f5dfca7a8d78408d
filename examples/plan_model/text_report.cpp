#include "text_report.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <forebay/base/dtype.hpp>
#include <ostream>

#include "units.hpp"

namespace plan_model {
namespace {

using forebay::byte_count;

[[nodiscard]] std::string size_of_tier(byte_count bytes) { return format_size(static_cast<double>(bytes)); }

void print_model(std::ostream& out, const training& t) {
  const model_shape& m = t.model;
  fmt::print(out, "Model    {} ({}): {} parameters; {} layers, width {}, {} heads, MLP {}, vocabulary {}\n", m.name,
             m.kind == family::gpt ? "GPT" : "Llama", format_count(static_cast<double>(parameters(m))), m.layers,
             m.width, m.heads, m.mlp_width, m.vocabulary);
  fmt::print(out, "         {}, {} on the {}, {} micro-batch{} of {} x {} tokens, activations {}{}\n",
             t.type == forebay::dtype::bf16 ? "bf16" : "fp32", t.optimizer == optimizer_kind::adamw ? "AdamW" : "SGD",
             t.update == forebay::place::host ? "CPU" : "device", t.micro_batches, t.micro_batches == 1 ? "" : "es",
             t.batch, m.context, t.again == recompute::none ? "kept" : "recomputed",
             t.clip ? ", gradients clipped by their norm" : "");
}

void print_order(std::ostream& out, const forebay::plan::trace& t) {
  byte_count bytes = 0;
  for (const byte_count b : t.item_bytes) {
    bytes += b;
  }
  fmt::print(out, "Order    as recorded: {} steps, {} items of {} in all\n", t.steps.size(), t.item_bytes.size(),
             size_of_tier(bytes));
}

void print_machine(std::ostream& out, const hardware& h) {
  const forebay::plan::machine& m = h.model;
  fmt::print(
      out, "Machine  device {}, {:.4g} TFLOP/s reached of {:.4g}; host {}, update {}; link {} to, {} from the device\n",
      size_of_tier(m.device_capacity), h.speed.flops / 1e12, h.peak_flops / 1e12, size_of_tier(m.host_capacity),
      format_rate(h.speed.update_bytes), format_rate(m.h2d_rate), format_rate(m.d2h_rate));
  if (m.storage.empty()) {
    fmt::print(out, "         no drive\n");
  }
  for (std::size_t i = 0; i < m.storage.size(); ++i) {
    fmt::print(out, "         drive {}: reads {}, writes {}{}\n", i, format_rate(m.storage[i].read_rate),
               format_rate(m.storage[i].write_rate), m.half_duplex_storage ? ", sharing its time" : "");
  }
  if (!h.assumed.empty()) {
    fmt::print(out, "         assumed, as not given:");
    for (const std::string& option : h.assumed) {
      fmt::print(out, " {}", option);
    }
    fmt::print(out, "\n");
  }
}

void print_memory(std::ostream& out, const answer& a) {
  const prediction& p = a.predicted;
  const forebay::plan::machine& m = a.asked.on.model;
  const auto enough = [](const std::optional<byte_count>& bytes) {
    return bytes ? size_of_tier(*bytes) : std::string("-");
  };
  fmt::print(out, "\nMemory   {:>14}{:>14}{:>26}\n", "has", "needs", "more does not help from");
  const auto line = [&](const char* tier, byte_count has, const forebay::plan::tier_need& need,
                        const std::string& most) {
    fmt::print(out, "{:<9}{:>14}{:>14}{:>26}   {}\n", tier, size_of_tier(has), size_of_tier(need.bytes), most,
               need.step ? p.work.step_names[*need.step] : "");
  };
  line("device", m.device_capacity, p.needs.device, enough(a.enough_device));
  line("host", m.host_capacity, p.needs.host, enough(a.enough_host));
  fmt::print(out, "in all   {:>14}{:>14}{:>26}   weights, gradients, optimizer state and activations at their most\n",
             "", size_of_tier(p.most_alive), "");
}

void print_unfit(std::ostream& out, const prediction& p) {
  fmt::print(out, "\nDoes not fit.\n");
  for (const shortage& s : p.shortages) {
    fmt::print(out, "  {}: {} for {}, has {}: {} short\n", s.tier, size_of_tier(s.needs), s.reason, size_of_tier(s.has),
               size_of_tier(s.needs - s.has));
  }
  if (!p.obstacle.empty()) {
    fmt::print(out, "  {}\n", p.obstacle);
  }
}

void print_prediction(std::ostream& out, const answer& a) {
  const prediction& p = a.predicted;
  if (a.asked.order) {
    fmt::print(out, "\nFits. An iteration takes {}\n", format_seconds(p.seconds()));
  } else {
    fmt::print(out, "\nFits. An iteration of {} tokens takes {}: {:.4g} tokens/s, {:.1f}% of the device's peak\n",
               tokens_of_iteration(a.asked.what), format_seconds(p.seconds()), tokens_per_second(a.asked, p),
               100.0 * model_flops_utilisation(a.asked, p));
  }
  fmt::print(out, "No schedule can take less than {}; predicted / bound {:.3f}. What binds:\n",
             format_seconds(p.bound.seconds), p.seconds() / p.bound.seconds);
  for (const charge& c : p.bound.charges) {
    fmt::print(out, "  {:<28}{:<22}{:>10}\n", c.phases, c.resource, format_seconds(c.seconds));
  }
  fmt::print(out, "Links    {:>26}{:>8}\n", "moved per iteration", "busy");
  for (const link_load& l : a.links) {
    fmt::print(out, "  {:<22}{:>11}{:>7.0f}%\n", l.link, size_of_tier(l.bytes), 100.0 * l.busy);
  }
  double idle = 0.0;
  for (const auto& [resource, seconds] : a.idle) {
    idle += seconds;
  }
  fmt::print(out, "The device waits {} ({:.0f}%)", format_seconds(idle), 100.0 * idle / p.seconds());
  const char* before = ": ";
  for (const auto& [resource, seconds] : a.idle) {
    fmt::print(out, "{}{} for {}", before, format_seconds(seconds), resource);
    before = ", ";
  }
  fmt::print(out, "\n");
}

void print_alternatives(std::ostream& out, const answer& a) {
  if (a.alternatives.empty()) {
    return;
  }
  fmt::print(out, "\n{:<27}{:>11}{:>12}{:>10}  {:<21} {}\n", "What if", "iteration", "tokens/s", "faster", "then binds",
             "options");
  for (const alternative& x : a.alternatives) {
    std::string options;
    for (const std::string& option : x.change.options) {
      options += (options.empty() ? "" : " ") + option;
    }
    if (!x.fits) {
      fmt::print(out, "{:<27}{:>11}{:>12}{:>10}  {:<21} {}\n", x.change.what, "does not fit", "", "", "", options);
      continue;
    }
    const std::string faster =
        a.predicted.fits() ? fmt::format("{:.2f}x", a.predicted.seconds() / x.seconds * 1.0) : "fits";
    const std::string tokens = a.asked.order ? "" : fmt::format("{:.4g}", x.tokens_per_second);
    fmt::print(out, "{:<27}{:>11}{:>12}{:>10}  {:<21} {}\n", x.change.what, format_seconds(x.seconds), tokens, faster,
               x.binding, options);
  }
}

}  // namespace

void print_report(std::ostream& out, const answer& a) {
  if (a.asked.order) {
    print_order(out, *a.asked.order);
  } else {
    print_model(out, a.asked.what);
  }
  print_machine(out, a.asked.on);
  if (a.predicted.cut.half_layers > 2) {
    fmt::print(out, "         planned in groups of {} layers, for speed\n", a.predicted.cut.half_layers / 2);
  }
  print_memory(out, a);
  if (a.predicted.fits()) {
    print_prediction(out, a);
  } else {
    print_unfit(out, a.predicted);
  }
  print_alternatives(out, a);
}

}  // namespace plan_model
