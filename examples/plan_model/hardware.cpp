#include "hardware.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <forebay/base/error.hpp>
#include <forebay/plan/machine_json.hpp>
#include <fstream>

#include "units.hpp"

namespace plan_model {
namespace {

using forebay::byte_count;
using forebay::plan::machine_description;
using forebay::plan::storage_link;

constexpr byte_count default_hbm = 80'000'000'000;
constexpr byte_count default_ram = 512'000'000'000;
constexpr double default_pcie = 50e9;
constexpr storage_link default_drive{12e9, 8e9, {}};
constexpr double default_ram_rate = 100e9;

[[nodiscard]] machine_description read(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) {
    const int error_number = errno;
    throw forebay::io_error(
        fmt::format("--machine {} cannot be read: {}", file.string(), forebay::describe_errno(error_number)),
        error_number);
  }
  try {
    return forebay::plan::read_machine_description(in);
  } catch (const forebay::usage_error& e) {
    throw forebay::usage_error(fmt::format("--machine {}: {}", file.string(), e.what()));
  }
}

/// The defaults, each of them named.
[[nodiscard]] machine_description assume(const machine_options& o, std::vector<std::string>& assumed) {
  machine_description d;
  d.model.device_capacity = default_hbm;
  d.model.host_capacity = default_ram;
  d.model.h2d_rate = d.model.d2h_rate = default_pcie;
  d.model.storage = {default_drive};
  if (!o.hbm) {
    assumed.push_back("--hbm " + size_option(default_hbm));
  }
  if (!o.ram) {
    assumed.push_back("--ram " + size_option(default_ram));
  }
  if (!o.pcie) {
    assumed.push_back("--pcie " + rate_option(default_pcie));
  }
  if (o.nvme.empty() && !o.no_nvme) {
    assumed.push_back("--nvme " +
                      fmt::format("{:g}/{:g}", default_drive.read_rate / 1e9, default_drive.write_rate / 1e9));
  }
  return d;
}

void choose_drives(const machine_options& o, forebay::plan::machine& m) {
  if (o.no_nvme) {
    m.storage.clear();
    m.half_duplex_storage = false;
    return;
  }
  if (!o.nvme.empty()) {
    m.storage.clear();
    m.half_duplex_storage = false;
    for (const auto& [read_rate, write_rate] : o.nvme) {
      m.storage.push_back({read_rate, write_rate});
    }
  }
  m.half_duplex_storage = m.half_duplex_storage || o.shared_nvme;
  if (o.more_drives > 0 && m.storage.empty()) {
    throw forebay::usage_error(
        fmt::format("--more-drives {}: there is no drive that they could be like", o.more_drives));
  }
  for (std::uint32_t i = 0; i < o.more_drives; ++i) {
    m.storage.push_back(storage_link(m.storage.back()));
  }
}

void require_capacity(byte_count capacity, const char* option, const machine_options& o) {
  if (capacity == 0) {
    throw forebay::usage_error(fmt::format("{} is needed: --machine {} gives no such capacity, or 0", option,
                                           o.file ? o.file->string() : std::string()));
  }
}

}  // namespace

hardware resolve(const machine_options& o) {
  hardware h;
  const machine_description d = o.file ? read(*o.file) : assume(o, h.assumed);
  h.model = d.model;
  h.model.device_capacity = o.hbm.value_or(h.model.device_capacity);
  h.model.host_capacity = o.ram.value_or(h.model.host_capacity);
  require_capacity(h.model.device_capacity, "--hbm", o);
  require_capacity(h.model.host_capacity, "--ram", o);
  if (o.pcie) {
    std::tie(h.model.h2d_rate, h.model.d2h_rate) = *o.pcie;
  }
  choose_drives(o, h.model);
  forebay::plan::validate(h.model);

  h.peak_flops = o.tflops * 1e12;
  h.speed.flops = h.peak_flops * o.efficiency;
  h.speed.device_bytes = o.hbm_rate;
  h.speed.update_bytes = o.ram_rate.value_or(d.compute.adam_bytes);
  if (h.speed.update_bytes == 0.0) {
    h.speed.update_bytes = default_ram_rate;
    h.assumed.push_back("--ram-rate " + rate_option(default_ram_rate));
  }
  return h;
}

}  // namespace plan_model
