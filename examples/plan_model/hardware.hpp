#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/plan/machine.hpp>

#include "training.hpp"

namespace plan_model {

/// What the command line says of the machine. What it leaves out comes from the file, else from the defaults.
struct machine_options {
  std::optional<std::filesystem::path> file;  ///< as `probe` writes it
  std::optional<forebay::byte_count> hbm;
  std::optional<forebay::byte_count> ram;
  std::optional<std::pair<double, double>> pcie;  ///< to the device, from the device
  std::vector<std::pair<double, double>> nvme;    ///< read and write, by drive
  std::uint32_t more_drives = 0;                  ///< so many more like the last one
  bool no_nvme = false;
  bool shared_nvme = false;        ///< reads and writes of a drive share its time
  double tflops = 400.0;           ///< peak of the device, in 1e12 per second
  double efficiency = 0.45;        ///< of the peak, what training reaches
  std::optional<double> ram_rate;  ///< that the CPU's update reads and writes
  double hbm_rate = 3e12;          ///< that an update on the device reads and writes
};

struct hardware {
  forebay::plan::machine model;
  compute_speed speed;
  double peak_flops = 0.0;
  std::vector<std::string> assumed;  ///< options that nobody gave, with their values
};

/// \throws usage_error naming the field or option; io_error when the file cannot be read.
[[nodiscard]] hardware resolve(const machine_options& o);

}  // namespace plan_model
