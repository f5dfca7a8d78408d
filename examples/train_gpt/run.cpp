#include "run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <forebay/base/error.hpp>
#include <forebay/checkpoint/digest.hpp>
#include <forebay/checkpoint/safetensors.hpp>
#include <forebay/telemetry/timeline.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>

#include "backend.hpp"
#include "corpus.hpp"
#include "device_trainer.hpp"
#include "engine_trainer.hpp"
#include "interrupt.hpp"
#include "json_log.hpp"
#include "model.hpp"
#include "progress.hpp"
#include "resident_trainer.hpp"
#include "run_folder.hpp"

namespace train_gpt {
namespace {

[[nodiscard]] std::vector<forebay::storage_path> storage_paths(const settings& s, const run_folder* own) {
  std::vector<forebay::storage_path> paths;
  const auto add = [&](const std::filesystem::path& folder) {
    paths.push_back({folder, s.storage_capacity, s.storage_read_rate, s.storage_write_rate});
  };
  if (own != nullptr) {
    add(own->storage());
  }
  for (const std::filesystem::path& folder : s.storage) {
    add(folder);
  }
  return paths;
}

/// The trainer and all that must outlive it.
struct training {
  explicit training(const settings& s) : model(s.shape, make_operations(s)), kernels(make_update_kernels(s)) {
    optimizer_settings optimizer{s.lr, s.clip, s.weight_decay};
    optimizer.kernels = kernels.get();
    if (s.trace) {
      timeline = std::make_unique<forebay::telemetry::timeline>();
    }
    if (s.resident && s.device == device_kind::cuda) {
      trainer = std::make_unique<device_trainer>(
          model, optimizer, s.seed, [&s](forebay::byte_count capacity) { return make_device(s, capacity); });
      return;
    }
    if (s.resident) {
      trainer = std::make_unique<resident_trainer>(model, optimizer, s.seed, timeline.get());
      return;
    }
    forebay::engine_options options;
    options.device = make_device(s, s.device_memory);
    if (s.storage.empty()) {
      remove_dead_run_folders(std::filesystem::current_path());
      folder = std::make_unique<run_folder>(std::filesystem::current_path());
    }
    options.host.capacity = s.host_memory;
    options.storage = storage_paths(s, folder.get());
    options.io.kind = s.io;
    options.recompute = s.recompute;
    if (s.planner == planner_choice::off) {
      options.planning = forebay::planning_policy::off;
    } else if (s.planner == planner_choice::look_ahead) {
      options.planner = forebay::planner_kind::look_ahead;
    }
    options.timeline = timeline.get();
    trainer = std::make_unique<engine_trainer>(model, optimizer, s.seed, std::move(options));
  }

  train_gpt::model<float> model;
  std::unique_ptr<forebay::device_update> kernels;
  std::unique_ptr<forebay::telemetry::timeline> timeline;
  std::unique_ptr<run_folder> folder;
  std::unique_ptr<train_gpt::trainer> trainer;
};

[[nodiscard]] step_text text_of(const corpus& text, const settings& s, std::uint64_t step) {
  step_text bytes(s.shape.micro_batches, std::vector<std::uint8_t>(s.shape.token_bytes()));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    text.sample(s.shape, s.seed, step, i, bytes[i]);
  }
  return bytes;
}

[[nodiscard]] run_summary summarise(training& t, double seconds, std::uint64_t steps, const step_result& last) {
  run_summary summary;
  summary.parameters = t.model.tensors().parameter_elements();
  summary.state_bytes = summary.parameters * 4 * sizeof(float);
  summary.memory = t.trainer->report();
  summary.plan = t.trainer->analyse();
  summary.tokens_per_second = static_cast<double>(steps * t.model.shape().tokens()) / seconds;
  summary.recomputations = last.cost.recomputations;
  summary.recomputable = t.model.recomputations().size();
  summary.digest = forebay::digest(t.trainer->state());
  return summary;
}

/// Finds out before the training whether what it ends with can be written.
void check_writable(const char* option, const std::filesystem::path& file) {
  const bool existed = std::filesystem::exists(file);
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    const int why = errno;
    throw forebay::io_error(
        fmt::format("{} {}: cannot be written: {}", option, file.string(), forebay::describe_errno(why)), why);
  }
  ::close(descriptor);
  if (!existed) {
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
  }
}

void train(const settings& s, const corpus& text, progress* shown, std::ostream& errors) {
  if (s.dump) {
    check_writable("--dump", *s.dump);
  }
  if (s.trace) {
    check_writable("--trace", *s.trace);
  }
  std::unique_ptr<json_log> log = s.json ? std::make_unique<json_log>(*s.json) : nullptr;
  training t(s);
  if (shown != nullptr) {
    for (const std::string& sentence : t.trainer->report().degradations) {
      errors << "note: " << sentence << '\n';
    }
  }
  double seconds = 0.0;
  step_result result;
  for (std::uint64_t step = 1; step <= s.steps; ++step) {
    throw_if_interrupted();
    result = t.trainer->run(step, text_of(text, s, step));
    seconds += result.cost.seconds;
    if (log) {
      log->add(step, result);
    }
    if (shown != nullptr) {
      shown->show(step, result, t.trainer->report().used);
    }
  }
  const run_summary summary = summarise(t, seconds, s.steps, result);
  if (s.dump) {
    forebay::export_safetensors(*s.dump, t.trainer->state(), {{"format", "pt"}});
  }
  if (s.trace) {
    forebay::telemetry::write_trace(*t.timeline, s.trace->string());
  }
  if (log) {
    log->add(summary);
  }
  if (shown != nullptr) {
    shown->show(summary);
  }
}

}  // namespace

int run(const settings& s, std::ostream& out, bool out_is_terminal, std::ostream& errors) {
  const interrupt_guard guard;
  const corpus text(s.data.empty() ? std::vector{default_text()} : s.data);
  text.check_holds(s.shape.context);
  std::unique_ptr<progress> shown;
  if (!s.quiet) {
    shown = std::make_unique<progress>(out, out_is_terminal, s.steps, s.shape.tokens());
    shown->say(fmt::format("{} of text in {} files", forebay::format_bytes(text.bytes()), text.files()));
  }
  try {
    train(s, text, shown.get(), errors);
    return 0;
  } catch (const interrupted& by) {
    shown.reset();  // ends its line
    errors << "interrupted: ended cleanly\n";
    return 128 + by.signal;
  }
}

}  // namespace train_gpt
