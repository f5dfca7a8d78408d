#include <cmath>
#include <ostream>
#include <utility>

#include <nlohmann/json.hpp>

#include <forebay/base/contract.hpp>
#include <forebay/base/error.hpp>
#include <forebay/plan/machine_json.hpp>

namespace forebay::plan {
namespace {

using nlohmann::ordered_json;

ordered_json rate_of(double rate) { return std::isinf(rate) ? ordered_json(nullptr) : ordered_json(rate); }

void add_measured(ordered_json& to, const char* key, double value) {
  if (value > 0.0) {
    to[key] = value;
  }
}

void add_text(ordered_json& to, const char* key, const std::string& text) {
  if (!text.empty()) {
    to[key] = text;
  }
}

ordered_json device_of(const machine_description& d) {
  ordered_json device;
  add_text(device, "name", d.device_name);
  device["capacity_bytes"] = d.model.device_capacity;
  device["h2d_bytes_per_second"] = rate_of(d.model.h2d_rate);
  device["d2h_bytes_per_second"] = rate_of(d.model.d2h_rate);
  add_measured(device, "h2d_bytes_per_second_both_ways", d.link_both_ways.h2d);
  add_measured(device, "d2h_bytes_per_second_both_ways", d.link_both_ways.d2h);
  return device;
}

ordered_json host_of(const machine_description& d) {
  ordered_json host;
  host["capacity_bytes"] = d.model.host_capacity;
  add_text(host, "capacity_source", d.host_capacity_source);
  if (d.compute.threads > 0) {
    host["threads"] = d.compute.threads;
  }
  add_measured(host, "copy_bytes_per_second_one_thread", d.compute.copy_one_thread);
  add_measured(host, "copy_bytes_per_second_all_threads", d.compute.copy_all_threads);
  add_measured(host, "adam_elements_per_second", d.compute.adam_elements);
  add_measured(host, "adam_bytes_per_second", d.compute.adam_bytes);
  return host;
}

ordered_json storage_of(const machine_description& d) {
  ordered_json paths = ordered_json::array();
  for (std::size_t p = 0; p < d.model.storage.size(); ++p) {
    ordered_json path;
    if (!d.storage_directories.empty()) {
      add_text(path, "directory", d.storage_directories[p]);
    }
    path["read_bytes_per_second"] = rate_of(d.model.storage[p].read_rate);
    path["write_bytes_per_second"] = rate_of(d.model.storage[p].write_rate);
    for (const mixed_rate& mix : d.model.storage[p].mixes) {
      path["mixes"].push_back({{"read_share", mix.read_share}, {"bytes_per_second", rate_of(mix.total_rate)}});
    }
    paths.push_back(std::move(path));
  }
  return {{"half_duplex", d.model.half_duplex_storage}, {"paths", paths}};
}

}  // namespace

void write_machine(std::ostream& out, const machine_description& d) {
  validate(d.model);
  FOREBAY_EXPECTS(d.storage_directories.empty() || d.storage_directories.size() == d.model.storage.size(),
                  "a directory for each storage path, or none");
  ordered_json all{{"version", machine_json_version}};
  all["device"] = device_of(d);
  all["host"] = host_of(d);
  all["storage"] = storage_of(d);
  out << all.dump(2, ' ', false, ordered_json::error_handler_t::replace) << std::endl;
  if (!out) {
    throw error("the machine's description cannot be written: the stream has failed");
  }
}

}  // namespace forebay::plan
