#include <forebay/plan/machine_json.hpp>

#include <istream>
#include <utility>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

#include "plan/detail/json_fields.hpp"

namespace forebay::plan {
namespace {

using detail::json;
using detail::json_checker;
using detail::json_fields;

void read_device(const json_checker& check, const json& value, machine_description& d) {
  const json_fields f(check, value, "device",
                      {"name", "capacity_bytes", "h2d_bytes_per_second", "d2h_bytes_per_second",
                       "h2d_bytes_per_second_both_ways", "d2h_bytes_per_second_both_ways"});
  f.text("name", d.device_name);
  f.whole("capacity_bytes", d.model.device_capacity);
  f.rate("h2d_bytes_per_second", d.model.h2d_rate);
  f.rate("d2h_bytes_per_second", d.model.d2h_rate);
  f.positive("h2d_bytes_per_second_both_ways", d.link_both_ways.h2d);
  f.positive("d2h_bytes_per_second_both_ways", d.link_both_ways.d2h);
}

void read_host(const json_checker& check, const json& value, machine_description& d) {
  const json_fields f(check, value, "host",
                      {"capacity_bytes", "capacity_source", "threads", "copy_bytes_per_second_one_thread",
                       "copy_bytes_per_second_all_threads", "adam_elements_per_second", "adam_bytes_per_second"});
  f.whole("capacity_bytes", d.model.host_capacity);
  f.text("capacity_source", d.host_capacity_source);
  f.whole("threads", d.compute.threads);
  f.positive("copy_bytes_per_second_one_thread", d.compute.copy_one_thread);
  f.positive("copy_bytes_per_second_all_threads", d.compute.copy_all_threads);
  f.positive("adam_elements_per_second", d.compute.adam_elements);
  f.positive("adam_bytes_per_second", d.compute.adam_bytes);
}

mixed_rate read_mix(const json_checker& check, const json& value, const std::string& name) {
  const json_fields f(check, value, name, {"read_share", "bytes_per_second"});
  mixed_rate mix;
  for (const char* required : {"read_share", "bytes_per_second"}) {
    static_cast<void>(f.at(required));
  }
  f.positive("read_share", mix.read_share);
  f.rate("bytes_per_second", mix.total_rate);
  return mix;
}

void read_path(const json_checker& check, const json& value, const std::string& name, machine_description& d) {
  const json_fields f(check, value, name, {"directory", "read_bytes_per_second", "write_bytes_per_second", "mixes"});
  storage_link path;
  f.rate("read_bytes_per_second", path.read_rate);
  f.rate("write_bytes_per_second", path.write_rate);
  f.list("mixes",
         [&](const json& mix, const std::string& mix_name) { path.mixes.push_back(read_mix(check, mix, mix_name)); });
  d.model.storage.push_back(std::move(path));
  if (f.find("directory") != nullptr) {
    d.storage_directories.resize(d.model.storage.size());
    f.text("directory", d.storage_directories.back());
  }
}

void read_storage(const json_checker& check, const json& value, machine_description& d) {
  const json_fields f(check, value, "storage", {"half_duplex", "paths"});
  f.flag("half_duplex", d.model.half_duplex_storage);
  f.list("paths", [&](const json& path, const std::string& name) { read_path(check, path, name, d); });
  if (!d.storage_directories.empty()) {
    d.storage_directories.resize(d.model.storage.size());
  }
}

json parse(std::istream& in) {
  if (!in) {
    throw error("the machine's description cannot be read: the stream has failed");
  }
  try {
    return json::parse(in);
  } catch (const json::exception& e) {
    throw usage_error(fmt::format("the machine's description is not JSON: {}", e.what()));
  }
}

}  // namespace

machine_description read_machine_description(std::istream& in) {
  const json all = parse(in);
  const json_checker check("the machine's");
  const json_fields f(check, all, "", {"version", "device", "host", "storage"});
  check.version(f.find("version"), "version", machine_json_version);
  machine_description d;
  if (const json* device = f.find("device"); device != nullptr) {
    read_device(check, *device, d);
  }
  if (const json* host = f.find("host"); host != nullptr) {
    read_host(check, *host, d);
  }
  if (const json* storage = f.find("storage"); storage != nullptr) {
    read_storage(check, *storage, d);
  }
  validate(d.model);
  return d;
}

machine read_machine(std::istream& in) { return read_machine_description(in).model; }

}  // namespace forebay::plan
