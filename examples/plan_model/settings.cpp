#include "settings.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <forebay/base/error.hpp>
#include <map>
#include <ostream>
#include <sstream>

#include "units.hpp"

namespace plan_model {
namespace {

[[noreturn]] void refuse(const std::string& option, const std::string& text, const std::string& wanted) {
  throw CLI::ValidationError(option, fmt::format("'{}' is not {}", text, wanted));
}

/// The options of one kind each: a name, where the value goes, what it may be, what it is for. Of several the last
/// wins.
class options {
 public:
  explicit options(CLI::App& app) : app_(app) {}

  CLI::Option* count(const std::string& name, std::uint64_t& to, std::uint64_t most, const std::string& help) {
    return add(name, help, "INT", [name, &to, most](const std::string& text) {
      std::uint64_t value = 0;
      const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (status != std::errc{} || end != text.data() + text.size() || value < 1 || value > most) {
        refuse(name, text, fmt::format("a whole number from 1 to {}", most));
      }
      to = value;
    });
  }

  void number(const std::string& name, double& to, double least, double most, const std::string& help) {
    add(name, help, "FLOAT", [name, &to, least, most](const std::string& text) {
      double value = 0.0;
      const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
      const bool parsed = status == std::errc{} && end == text.data() + text.size();
      if (!parsed || !(value >= least) || !(value <= most)) {
        refuse(name, text, fmt::format("a number from {} to {}", least, most));
      }
      to = value;
    })->default_str(fmt::format("{}", to));
  }

  void size(const std::string& name, std::optional<forebay::byte_count>& to, const std::string& help) {
    constexpr forebay::byte_count least = 1'000'000;  // below that the unit was forgotten
    add(name, help, "SIZE", [name, &to](const std::string& text) {
      forebay::byte_count bytes = 0;
      try {
        bytes = forebay::parse_bytes(text);
      } catch (const forebay::usage_error&) {
        refuse(name, text, "a size such as 80GB");
      }
      if (bytes < least || bytes > forebay::byte_count{1} << 60U) {
        refuse(name, text, "a size from 1MB to 1024PiB, such as 80GB");
      }
      to = bytes;
    });
  }

  /// `set` may throw usage_error.
  CLI::Option* rate(const std::string& name, std::function<void(const std::string&)> set, const std::string& help) {
    return add(name, help, "RATE", [name, set = std::move(set)](const std::string& text) {
      try {
        set(text);
      } catch (const forebay::usage_error& e) {
        throw CLI::ValidationError(name, e.what());
      }
    });
  }

  template <typename Choice>
  CLI::Option* choice(const std::string& name, const std::vector<std::pair<std::string, Choice>>& choices,
                      std::function<void(const Choice&)> set, const std::string& help) {
    std::string names;
    for (const auto& [choice_name, value] : choices) {
      names += (names.empty() ? "" : "|") + choice_name;
    }
    return add(name, help, names, [name, choices, names, set = std::move(set)](const std::string& text) {
      for (const auto& [choice_name, value] : choices) {
        if (choice_name == text) {
          set(value);
          return;
        }
      }
      refuse(name, text, "one of " + names);
    });
  }

  CLI::Option* file(const std::string& name, std::optional<std::filesystem::path>& to, const std::string& help) {
    return add(name, help, "FILE", [name, &to](const std::string& text) {
      if (text.empty()) {
        refuse(name, text, "a file name");
      }
      to = text;
    });
  }

 private:
  CLI::Option* add(const std::string& name, const std::string& help, const std::string& type,
                   std::function<void(const std::string&)> set) {
    return app_.add_option_function<std::string>(name, std::move(set), help)
        ->type_name(type)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }

  CLI::App& app_;
};

/// A model's shape, option by option: 0 where the option was not given.
struct shape_options {
  std::optional<model_shape> preset;
  std::optional<family> kind;
  model_shape given;
};

void add_model_options(options& add, shape_options& shape, training& what) {
  constexpr std::uint64_t most = std::uint64_t{1} << 20U;
  std::vector<std::pair<std::string, model_shape>> named;
  for (const model_shape& m : presets()) {
    named.emplace_back(m.name, m);
  }
  add.choice<model_shape>(
      "--model", named, [&](const model_shape& m) { shape.preset = m; },
      "A published shape, which other options may change");
  add.choice<family>(
      "--family", {{"gpt", family::gpt}, {"llama", family::llama}}, [&](const family& f) { shape.kind = f; },
      "What layers are made of");
  add.count("--layers", shape.given.layers, 10'000, "Transformer layers");
  add.count("--width", shape.given.width, most, "Width of the residual stream");
  add.count("--heads", shape.given.heads, most, "Attention heads; divides the width");
  add.count("--kv-heads", shape.given.kv_heads, most, "Heads of keys and values (default: all)");
  add.count("--mlp-width", shape.given.mlp_width, 16 * most, "Width inside the MLP (default: 4 widths)");
  add.count("--vocabulary", shape.given.vocabulary, 16 * most, "Tokens of the vocabulary");
  add.count("--context", shape.given.context, 16 * most, "Tokens of a sequence");
  add.count("--batch", what.batch, most, "Sequences of a micro-batch")->default_str("1");
  add.count("--micro-batches", what.micro_batches, 256, "Micro-batches whose gradients are added")->default_str("1");
}

void add_training_options(CLI::App& app, options& add, training& what) {
  using forebay::dtype;
  using forebay::place;
  add.choice<dtype>(
         "--dtype", {{"bf16", dtype::bf16}, {"fp32", dtype::f32}}, [&](const dtype& d) { what.type = d; },
         "Of weights, gradients and activations")
      ->default_str("bf16");
  add.choice<optimizer_kind>(
         "--optimizer", {{"adamw", optimizer_kind::adamw}, {"sgd", optimizer_kind::sgd}},
         [&](const optimizer_kind& o) { what.optimizer = o; }, "SGD is without momentum")
      ->default_str("adamw");
  add.choice<place>(
         "--update", {{"host", place::host}, {"device", place::device}}, [&](const place& p) { what.update = p; },
         "Where the optimizer computes")
      ->default_str("host");
  add.choice<recompute>(
         "--recompute", {{"none", recompute::none}, {"all", recompute::all}},
         [&](const recompute& r) { what.again = r; }, "Activations that are not kept; all: all but each layer's input")
      ->default_str("none");
  app.add_flag("--clip", what.clip, "Gradients are clipped by their norm: updates wait for the last of them");
}

void add_machine_options(CLI::App& app, options& add, machine_options& where) {
  add.file("--machine", where.file, "What probe wrote; the options below go before it");
  add.size("--hbm", where.hbm, "Memory of the device (default: 80GB)");
  add.size("--ram", where.ram, "Memory of the host that may be used (default: 512GB)");
  add.rate(
      "--pcie", [&](const std::string& text) { where.pcie = parse_rates(text); },
      "Link to the device, each way, or TO/FROM (default: 50GB/s)");
  add.rate(
         "--nvme", [&](const std::string& text) { where.nvme.push_back(parse_rates(text)); },
         "A drive: READ/WRITE in GB/s; repeatable (default: one of 12/8)")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->trigger_on_parse();
  app.add_option_function<std::string>(
         "--more-drives",
         [&](const std::string& text) {
           std::uint64_t value = 0;
           const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
           if (status != std::errc{} || end != text.data() + text.size() || value > 64) {
             refuse("--more-drives", text, "a whole number from 0 to 64");
           }
           where.more_drives = static_cast<std::uint32_t>(value);
         },
         "So many more drives like the last one")
      ->type_name("INT")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_flag("--no-nvme", where.no_nvme, "No drives");
  app.add_flag("--shared-nvme", where.shared_nvme, "Reads and writes of a drive share its time");
  add.number("--tflops", where.tflops, 1e-6, 1e9, "Peak of the device, in 10^12 per second");
  add.number("--efficiency", where.efficiency, 1e-3, 1.0, "Share of the peak that training reaches");
  add.rate(
      "--ram-rate", [&](const std::string& text) { where.ram_rate = parse_rate(text); },
      "Bytes that an update on the CPU reads and writes (default: 100GB/s)");
  add.rate(
      "--hbm-rate", [&](const std::string& text) { where.hbm_rate = parse_rate(text); },
      "Bytes that an update on the device reads and writes (default: 3000GB/s)");
}

/// In place of all options so far, which say what is trained.
void add_trace_option(CLI::App& app, options& add, std::optional<std::filesystem::path>& trace) {
  const std::vector<CLI::Option*> of_the_model = app.get_options();
  CLI::Option* option = add.file("--trace", trace, "A recorded order (JSON, one line) in place of a model");
  for (CLI::Option* other : of_the_model) {
    if (other != app.get_help_ptr()) {
      option->excludes(other);
    }
  }
}

/// The preset, or a GPT with the width given, changed by what else is given.
[[nodiscard]] model_shape choose_shape(const shape_options& o) {
  const bool own = !o.preset && (o.given.width > 0 || o.given.layers > 0 || o.given.heads > 0 || o.kind);
  const model_shape custom{"custom", family::gpt, 32, 4096, 32, 0, 0, 50257, 2048};
  model_shape m = own ? custom : o.preset.value_or(presets().front());
  const auto change = [](std::uint64_t& value, std::uint64_t given) { value = given > 0 ? given : value; };
  m.kind = o.kind.value_or(m.kind);
  change(m.layers, o.given.layers);
  change(m.width, o.given.width);
  change(m.heads, o.given.heads);
  if (o.given.heads > 0 || m.kv_heads == 0) {
    m.kv_heads = m.heads;
  }
  if (o.given.width > 0 || m.mlp_width == 0) {
    m.mlp_width = 4 * m.width;
  }
  change(m.kv_heads, o.given.kv_heads);
  change(m.mlp_width, o.given.mlp_width);
  change(m.vocabulary, o.given.vocabulary);
  change(m.context, o.given.context);
  if (m.width % m.heads != 0) {
    refuse("--heads", std::to_string(m.heads), fmt::format("a divisor of the width {}", m.width));
  }
  if (m.heads % m.kv_heads != 0) {
    refuse("--kv-heads", std::to_string(m.kv_heads), fmt::format("a divisor of the heads {}", m.heads));
  }
  return m;
}

void check_sizes(const training& t) {
  // Far beyond any memory, and far below what 64 bits hold in any sum.
  constexpr double most_bytes = 0x1p56;
  const double tokens = static_cast<double>(t.batch) * static_cast<double>(t.model.context);
  const double kept = tokens * static_cast<double>(t.micro_batches) * static_cast<double>(t.model.layers) *
                      static_cast<double>(9 * t.model.width + 3 * t.model.mlp_width);
  if (tokens * static_cast<double>(t.model.vocabulary) * 4.0 > most_bytes || kept * 4.0 > most_bytes) {
    refuse("--batch", std::to_string(t.batch), "small enough: activations and logits must be below 2^56 bytes");
  }
  const auto width = static_cast<double>(t.model.width);
  const double weights =
      static_cast<double>(t.model.layers) * width * (4.0 * width + 3.0 * static_cast<double>(t.model.mlp_width)) +
      2.0 * width * static_cast<double>(t.model.vocabulary + t.model.context);
  if (weights * 16.0 > most_bytes) {
    refuse("--width", std::to_string(t.model.width), "small enough: weights and state must be below 2^56 bytes");
  }
}

}  // namespace

command_line parse_command_line(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& errors) {
  settings chosen;
  chosen.arguments = arguments;
  shape_options shape;
  CLI::App app{"Says whether a transformer trains on a machine, how fast, what binds, and what would help.",
               "plan_model"};
  app.get_formatter()->column_width(34);
  options add(app);
  add_model_options(add, shape, chosen.what);
  add_training_options(app, add, chosen.what);
  add_trace_option(app, add, chosen.trace);
  add_machine_options(app, add, chosen.where);
  add.number("--effort", chosen.effort, 0.0, 100.0, "Of the planner, for each prediction; 1 is about half a second");
  app.add_flag("!--no-what-if", chosen.what_if, "Leave the table of other machines out");
  add.file("--json", chosen.json, "Write everything as JSON");
  add.file("--timeline", chosen.timeline, "Write the predicted schedule for Perfetto or chrome://tracing");
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    chosen.what.model = choose_shape(shape);
    check_sizes(chosen.what);
  } catch (const CLI::ParseError& e) {
    const bool help = app.exit(e, out, errors) == 0;
    return {std::nullopt, help ? 0 : exit_usage};
  }
  return {std::move(chosen), 0};
}

settings with_options(const settings& s, const std::vector<std::string>& further) {
  std::vector<std::string> arguments = s.arguments;
  arguments.insert(arguments.end(), further.begin(), further.end());
  std::ostringstream out;
  std::ostringstream errors;
  command_line line = parse_command_line(arguments, out, errors);
  if (!line.chosen) {
    throw forebay::usage_error(errors.str());
  }
  return std::move(*line.chosen);
}

}  // namespace plan_model
