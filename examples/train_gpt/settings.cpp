#include "settings.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <forebay/base/error.hpp>
#include <limits>
#include <map>
#include <ostream>

namespace train_gpt {
namespace {

[[noreturn]] void refuse(const std::string& option, const std::string& text, const std::string& wanted) {
  throw CLI::ValidationError(option, fmt::format("'{}' is not {}", text, wanted));
}

/// The options of one kind each: a name, where the value goes, what it may be, what it is for.
class options {
 public:
  explicit options(CLI::App& app) : app_(app) {}

  template <typename Integer>
  void count(const std::string& name, Integer& to, std::uint64_t least, std::uint64_t most, const std::string& help) {
    add(name, help, "INT", std::to_string(to), [name, &to, least, most](const std::string& text) {
      std::uint64_t value = 0;
      const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (status != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
        refuse(name, text, fmt::format("a whole number from {} to {}", least, most));
      }
      to = static_cast<Integer>(value);
    });
  }

  void number(const std::string& name, float& to, bool zero_allowed, const std::string& help) {
    add(name, help, "FLOAT", fmt::format("{}", to), [name, &to, zero_allowed](const std::string& text) {
      float value = 0.0F;
      const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
      const bool parsed = status == std::errc{} && end == text.data() + text.size();
      if (!parsed || !std::isfinite(value) || value < 0.0F || (value == 0.0F && !zero_allowed)) {
        refuse(name, text, zero_allowed ? "a finite number of at least 0" : "a finite number above 0");
      }
      to = value;
    });
  }

  void bytes(const std::string& name, forebay::byte_count& to, forebay::byte_count least, const std::string& help) {
    const std::string shown = to == 0 ? "" : forebay::format_bytes(to);
    add(name, help, "SIZE", shown, [name, &to, least](const std::string& text) {
      try {
        to = forebay::parse_bytes(text);
      } catch (const forebay::usage_error&) {
        refuse(name, text, "a size such as 64MiB");
      }
      if (to < least) {
        refuse(name, text, fmt::format("a size of at least {}", forebay::format_bytes(least)));
      }
    });
  }

  template <typename Choice>
  void choice(const std::string& name, Choice& to, const std::map<std::string, Choice>& choices,
              const std::string& help, const std::string& shown = "auto") {
    std::string names;
    for (const auto& [choice_name, value] : choices) {
      names += (names.empty() ? "" : "|") + choice_name;
    }
    add(name, help, names, shown, [name, &to, choices, names](const std::string& text) {
      const auto found = choices.find(text);
      if (found == choices.end()) {
        refuse(name, text, "one of " + names);
      }
      to = found->second;
    });
  }

  void file(const std::string& name, std::optional<std::filesystem::path>& to, const std::string& help) {
    add(name, help, "FILE", "", [name, &to](const std::string& text) {
      if (text.empty()) {
        refuse(name, text, "a file name");
      }
      to = text;
    });
  }

 private:
  template <typename Set>
  void add(const std::string& name, const std::string& help, const std::string& type, const std::string& shown,
           Set set) {
    CLI::Option* option = app_.add_option_function<std::string>(name, std::move(set), help);
    option->type_name(type)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    if (!shown.empty()) {
      option->default_str(shown);
    }
  }

  CLI::App& app_;
};

void add_model_options(CLI::App& app, options& add, settings& s) {
  constexpr std::uint64_t most = std::uint64_t{1} << 20U;
  app.add_option("--data", s.data, "Files and folders to train on (default: the compiler's C++ headers)")
      ->type_name("PATH");
  add.count("--layers", s.shape.layers, 1, most, "Transformer layers");
  add.count("--width", s.shape.width, 1, most, "Width of the residual stream");
  add.count("--heads", s.shape.heads, 1, most, "Attention heads; divides the width");
  add.count("--context", s.shape.context, 1, most, "Tokens (bytes) of a sequence");
  add.count("--batch", s.shape.batch, 1, most, "Sequences of a micro-batch");
  add.count("--micro-batches", s.shape.micro_batches, 1, most, "Micro-batches whose gradients are added in a step");
  add.count("--steps", s.steps, 1, std::uint64_t{1} << 40U, "Steps to train");
  add.count("--seed", s.seed, 0, std::numeric_limits<std::uint64_t>::max(), "Of the first weights and of the text");
  add.number("--lr", s.lr, false, "Learning rate");
  add.number("--clip", s.clip, true, "Largest gradient norm; 0: no clipping");
  add.number("--weight-decay", s.weight_decay, true, "Decoupled weight decay of the matrices");
}

void add_memory_options(CLI::App& app, options& add, settings& s) {
  using forebay::io::backend_kind;
  add.bytes("--device-memory", s.device_memory, 1, "Capacity of the device tier");
  add.bytes("--host-memory", s.host_memory, 0, "Capacity of the host tier; 0: what the container leaves");
  app.add_option("--storage", s.storage, "Folder of the storage tier, repeatable (default: a fresh one, removed after)")
      ->type_name("DIR");
  add.bytes("--storage-capacity", s.storage_capacity, 0,
            "Bytes that each storage folder may take (default: what is free)");
  add.choice<device_kind>(
      "--device", s.device,
      {{"auto", device_kind::automatic}, {"cuda", device_kind::cuda}, {"emulated", device_kind::emulated}},
      "Where the model is trained (auto: emulated)");
  add.choice<matmul_precision>(
      "--matmul", s.matmul,
      {{"fp32", matmul_precision::fp32}, {"tf32", matmul_precision::tf32}, {"bf16", matmul_precision::bf16}},
      "What a GPU rounds factors of matrix products to", "fp32");
  add.bytes("--h2d-rate", s.h2d_rate, 0, "Limit of the link to the device, per second");
  add.bytes("--d2h-rate", s.d2h_rate, 0, "Limit of the link from the device, per second");
  add.bytes("--storage-read-rate", s.storage_read_rate, 0, "Limit of reads from each storage folder, per second");
  add.bytes("--storage-write-rate", s.storage_write_rate, 0, "Limit of writes to each storage folder, per second");
  add.choice<backend_kind>(
      "--io", s.io,
      {{"auto", backend_kind::automatic}, {"uring", backend_kind::uring}, {"threads", backend_kind::threads}},
      "How files are read and written");
  add.choice<planner_choice>(
      "--planner", s.planner,
      {{"auto", planner_choice::automatic}, {"lookahead", planner_choice::look_ahead}, {"off", planner_choice::off}},
      "Whose schedule tensors follow: the planner's, or that of a fixed look-ahead to compare it with");
  using forebay::recompute_policy;
  add.choice<recompute_policy>(
      "--recompute", s.recompute,
      {{"auto", recompute_policy::automatic}, {"none", recompute_policy::none}, {"all", recompute_policy::all}},
      "Layers whose activations are computed again in the backward pass instead of being kept");
  app.add_flag("--resident", s.resident, "Train without the engine, everything in plain memory");
}

void add_output_options(CLI::App& app, options& add, settings& s) {
  add.file("--json", s.json, "Write one JSON object a line: each step, then a summary");
  add.file("--trace", s.trace, "Write a timeline for Perfetto or chrome://tracing");
  add.file("--dump", s.dump, "Write weights and optimizer state as safetensors");
  app.add_flag("--quiet", s.quiet, "Say nothing but errors");
}

void check_together(const settings& s) {
  if (s.shape.width % s.shape.heads != 0) {
    refuse("--heads", std::to_string(s.shape.heads), fmt::format("a divisor of --width {}", s.shape.width));
  }
  // The largest matrices, in elements: what the matrix library counts in 32 bits and no memory here would hold anyway.
  constexpr double largest = 0x1p31;
  const auto width = static_cast<double>(s.shape.width);
  const double tokens = static_cast<double>(s.shape.batch) * static_cast<double>(s.shape.context);
  if (s.matmul != matmul_precision::fp32 && s.device != device_kind::cuda) {
    throw CLI::ValidationError("--matmul", "tf32 and bf16 are of --device cuda; the CPU multiplies in fp32");
  }
  if (4.0 * width * width >= largest) {
    refuse("--width", std::to_string(s.shape.width), "small enough: a layer's 4 width^2 weights must be below 2^31");
  }
  if (tokens * std::max(4.0 * width, 256.0) >= largest) {
    refuse(
        "--batch", std::to_string(s.shape.batch),
        fmt::format("small enough: with --context {} and --width {} a layer's activations must be below 2^31 elements",
                    s.shape.context, s.shape.width));
  }
}

}  // namespace

command_line parse_command_line(int argc, const char* const* argv, std::ostream& out, std::ostream& errors) {
  settings chosen;
  CLI::App app{
      "Trains a small transformer on text, byte by byte, through tiers of memory that are each too small for it.",
      "train_gpt"};
  app.get_formatter()->column_width(34);
  options add(app);
  add_model_options(app, add, chosen);
  add_memory_options(app, add, chosen);
  add_output_options(app, add, chosen);
  try {
    app.parse(argc, argv);
    check_together(chosen);
  } catch (const CLI::ParseError& e) {
    const bool help = app.exit(e, out, errors) == 0;
    return {std::nullopt, help ? 0 : exit_usage};
  }
  return {std::move(chosen), 0};
}

}  // namespace train_gpt
