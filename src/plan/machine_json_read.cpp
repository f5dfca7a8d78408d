#include <forebay/plan/machine_json.hpp>

#include <cmath>
#include <initializer_list>
#include <istream>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <forebay/base/error.hpp>

namespace forebay::plan {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& field, std::string_view wanted, const json& found) {
  throw usage_error(fmt::format("the machine's {} must be {}, and is {}", field, wanted,
                                found.dump(-1, ' ', false, json::error_handler_t::replace)));
}

/// One JSON object with the path that names it in messages.
class fields {
 public:
  /// \throws usage_error when `value` is not an object or has other fields than the known ones.
  fields(const json& value, std::string path, std::initializer_list<std::string_view> known)
      : value_(value), path_(std::move(path)) {
    if (!value.is_object()) {
      refuse(path_.empty() ? "description" : path_, "an object", value);
    }
    for (const auto& [key, ignored] : value.items()) {
      bool found = false;
      for (const std::string_view name : known) {
        found = found || name == key;
      }
      if (!found) {
        throw usage_error(fmt::format("the machine has no {}; known here are {}", name_of(key),
                                      fmt::join(known.begin(), known.end(), ", ")));
      }
    }
  }

  [[nodiscard]] std::string name_of(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }
  [[nodiscard]] const json* find(std::string_view key) const {
    const auto found = value_.find(std::string(key));
    return found == value_.end() ? nullptr : &*found;
  }

  /// Above zero; null: unlimited. Left out: stays as it is.
  void rate(std::string_view key, double& to) const {
    const json* v = find(key);
    if (v != nullptr && v->is_null()) {
      to = unlimited_rate;
    } else {
      positive(key, to);
    }
  }
  void positive(std::string_view key, double& to) const {
    const json* v = find(key);
    if (v == nullptr) {
      return;
    }
    if (!v->is_number() || !(v->get<double>() > 0.0) || !std::isfinite(v->get<double>())) {
      refuse(name_of(key), "a number above zero", *v);
    }
    to = v->get<double>();
  }
  template <typename Integer>
  void whole(std::string_view key, Integer& to) const {
    const json* v = find(key);
    if (v == nullptr) {
      return;
    }
    if (!v->is_number_unsigned() || v->get<std::uint64_t>() > std::numeric_limits<Integer>::max()) {
      refuse(name_of(key), fmt::format("a whole number up to {}", std::numeric_limits<Integer>::max()), *v);
    }
    to = v->get<Integer>();
  }
  void text(std::string_view key, std::string& to) const {
    if (const json* v = find(key); v != nullptr) {
      if (!v->is_string()) {
        refuse(name_of(key), "a text", *v);
      }
      to = v->get<std::string>();
    }
  }
  void flag(std::string_view key, bool& to) const {
    if (const json* v = find(key); v != nullptr) {
      if (!v->is_boolean()) {
        refuse(name_of(key), "true or false", *v);
      }
      to = v->get<bool>();
    }
  }
  /// Calls `each(element, its name)`; nothing when left out.
  template <typename Each>
  void list(std::string_view key, Each&& each) const {
    const json* v = find(key);
    if (v == nullptr) {
      return;
    }
    if (!v->is_array()) {
      refuse(name_of(key), "a list", *v);
    }
    for (std::size_t i = 0; i < v->size(); ++i) {
      each((*v)[i], fmt::format("{}[{}]", name_of(key), i));
    }
  }

 private:
  const json& value_;
  std::string path_;
};

void read_device(const json& value, machine_description& d) {
  const fields f(value, "device",
                 {"name", "capacity_bytes", "h2d_bytes_per_second", "d2h_bytes_per_second",
                  "h2d_bytes_per_second_both_ways", "d2h_bytes_per_second_both_ways"});
  f.text("name", d.device_name);
  f.whole("capacity_bytes", d.model.device_capacity);
  f.rate("h2d_bytes_per_second", d.model.h2d_rate);
  f.rate("d2h_bytes_per_second", d.model.d2h_rate);
  f.positive("h2d_bytes_per_second_both_ways", d.link_both_ways.h2d);
  f.positive("d2h_bytes_per_second_both_ways", d.link_both_ways.d2h);
}

void read_host(const json& value, machine_description& d) {
  const fields f(value, "host",
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

mixed_rate read_mix(const json& value, const std::string& name) {
  const fields f(value, name, {"read_share", "bytes_per_second"});
  mixed_rate mix;
  for (const char* required : {"read_share", "bytes_per_second"}) {
    if (f.find(required) == nullptr) {
      throw usage_error(fmt::format("the machine's {} is missing", f.name_of(required)));
    }
  }
  f.positive("read_share", mix.read_share);
  f.rate("bytes_per_second", mix.total_rate);
  return mix;
}

void read_path(const json& value, const std::string& name, machine_description& d) {
  const fields f(value, name, {"directory", "read_bytes_per_second", "write_bytes_per_second", "mixes"});
  storage_link path;
  f.rate("read_bytes_per_second", path.read_rate);
  f.rate("write_bytes_per_second", path.write_rate);
  f.list("mixes", [&](const json& mix, const std::string& mix_name) { path.mixes.push_back(read_mix(mix, mix_name)); });
  d.model.storage.push_back(std::move(path));
  if (f.find("directory") != nullptr) {
    d.storage_directories.resize(d.model.storage.size());
    f.text("directory", d.storage_directories.back());
  }
}

void read_storage(const json& value, machine_description& d) {
  const fields f(value, "storage", {"half_duplex", "paths"});
  f.flag("half_duplex", d.model.half_duplex_storage);
  f.list("paths", [&](const json& path, const std::string& name) { read_path(path, name, d); });
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

void check_version(const fields& f) {
  const json* found = f.find("version");
  if (found == nullptr) {
    throw usage_error("the machine's version is missing");
  }
  if (!found->is_number_integer() || *found != machine_json_version) {
    throw unsupported_error(
        fmt::format("the machine's version is {}; this library reads version {}", found->dump(), machine_json_version));
  }
}

}  // namespace

machine_description read_machine_description(std::istream& in) {
  const json all = parse(in);
  const fields f(all, "", {"version", "device", "host", "storage"});
  check_version(f);
  machine_description d;
  if (const json* device = f.find("device"); device != nullptr) {
    read_device(*device, d);
  }
  if (const json* host = f.find("host"); host != nullptr) {
    read_host(*host, d);
  }
  if (const json* storage = f.find("storage"); storage != nullptr) {
    read_storage(*storage, d);
  }
  validate(d.model);
  return d;
}

machine read_machine(std::istream& in) { return read_machine_description(in).model; }

}  // namespace forebay::plan
