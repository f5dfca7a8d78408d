#include "campaign.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <forebay/base/error.hpp>
#include <forebay/device/emulated_device.hpp>

#include "campaign_layers.hpp"
#include "campaign_watch.hpp"
#include "scratch_directory.hpp"

namespace forebay::campaign {
namespace {

using testing::fault;
using testing::fault_effect;

constexpr std::chrono::seconds patience{120};

engine_options options_of(const setup& how, const std::filesystem::path& directory, tier_bytes capacity) {
  engine_options o;
  o.device = emulated_device({.capacity = capacity.device});
  o.host.capacity = capacity.host;
  o.chunk = 16_KiB;
  o.staging_chunks = 3;
  o.packed_block_bytes = 32_KiB;
  o.checksums = how.checksums;
  o.direct_io = how.direct;
  o.prefetch = how.prefetch;
  o.poison_freed_memory = true;
  o.stall_limit = how.stall_limit;
  o.io.kind = how.kind;
  o.io.wrap = how.defect;
  for (unsigned i = 0; i < how.paths; ++i) {
    o.storage.push_back({.directory = directory / ("path" + std::to_string(i))});
  }
  return o;
}

tier_bytes capacity_of(const setup& how, const std::filesystem::path& directory) {
  static const tier_bytes least = [&] {
    engine probe(options_of({}, directory, {4_MiB, 4_MiB, 0}));
    layers program;
    return probe.minimum_capacity(program.declare(probe));
  }();
  const auto room = align_down(static_cast<byte_count>(how.room * static_cast<double>(layers::bytes())), 4_KiB);
  return {least.device + room, least.host + room, 0};
}

bool script_has(const trial& t, bool (*which)(const fault&)) {
  return std::any_of(t.script.faults.begin(), t.script.faults.end(), which);
}

/// Delivers other bytes than were written, without an error.
bool is_silent(const fault& f) {
  return f.what == fault_effect::flip_bit || f.what == fault_effect::tear || f.what == fault_effect::stale_read ||
         f.what == fault_effect::stale_completion;
}

/// Whether the script has a fault from which this errno may reach the caller, in spite of all retries.
bool explains(const trial& t, int error_number) {
  return std::any_of(t.script.faults.begin(), t.script.faults.end(), [&](const fault& f) {
    const bool more_than_retried = error_number != EIO || f.when.most > 2;
    return (f.what == fault_effect::fail && f.error_number == error_number && more_than_retried) ||
           (f.what == fault_effect::stale_completion && error_number == EIO);  // it may claim more than was wanted
  });
}

/// What an error's text lacks of what a person needs.
std::string missing_words(const std::string& text, const std::filesystem::path& directory, int error_number) {
  std::string missing;
  const auto need = [&](const std::string& word, const char* what) {
    if (text.find(word) == std::string::npos) {
      missing += std::string(missing.empty() ? "" : ", ") + what;
    }
  };
  need("layer", "the tensor");
  need("storage", "the tier");
  need(directory.string() + "/path", "the path");
  need("offset ", "the offset");
  need("wanted ", "the bytes wanted");
  need("got ", "the bytes got");
  if (error_number != 0) {
    need(strerrorname_np(error_number), "the errno");
  }
  return missing;
}

std::string judge_io_error(const trial& t, const io_error& e, const std::filesystem::path& directory) {
  if (!explains(t, e.error_number())) {
    return std::string("an error that no fault explains: ") + e.what();
  }
  const std::string missing = missing_words(e.what(), directory, e.error_number());
  return missing.empty() ? "" : "an error that does not name " + missing + ": " + e.what();
}

std::string judge_corruption(const trial& t, const corruption_error& e, const std::filesystem::path& directory) {
  if (!script_has(t, is_silent)) {
    return std::string("corruption that no fault explains: ") + e.what();
  }
  const std::string missing = missing_words(e.what(), directory, 0);
  return missing.empty() ? "" : "an error that does not name " + missing + ": " + e.what();
}

/// The engine reports the first failure of an iteration for ever.
std::string judge_latch(engine& e, const std::string& first) {
  try {
    static_cast<void>(e.begin(100));
  } catch (const error& again) {
    return again.what() == first ? "" : "the second failure is another: '" + first + "', then '" + again.what() + "'";
  }
  return "the engine goes on after '" + first + "'";
}

/// Runs and judges; the engine lives and dies in here.
void run_engine(const trial& t, const std::filesystem::path& directory, tier_bytes capacity, testing::io_faults& faults,
                finding& found) {
  engine_options o = options_of(t.how, directory, capacity);
  faults.install(o.io);
  engine e(std::move(o));
  layers program;
  try {
    e.set_order(program.declare(e));
    program.run(e);
    found.problem = program.difference(e);
    return;
  } catch (const io_error& failure) {
    found.error = failure.what();
    found.problem = judge_io_error(t, failure, directory);
  } catch (const corruption_error& failure) {
    found.error = failure.what();
    found.problem = judge_corruption(t, failure, directory);
  } catch (const std::exception& failure) {
    found.error = failure.what();
    found.problem = std::string("an error of the wrong type, or a stall: ") + failure.what();
  }
  if (found.problem.empty() && program.stopped_in_iteration()) {
    found.problem = judge_latch(e, found.error);
  }
}

}  // namespace

finding run(const trial& t) {
  finding found;
  const testing_support::scratch_directory directory;
  const tier_bytes capacity = capacity_of(t.how, directory.path());
  const watchdog dog(describe(t), patience);
  const belongings before = belongings::now();
  testing::io_faults faults(t.script, t.seed);
  const time_point start = std::chrono::steady_clock::now();
  try {
    run_engine(t, directory.path(), capacity, faults, found);
  } catch (const std::exception& failure) {
    found.problem = std::string("the engine can't be made: ") + failure.what();
  }
  found.seconds = to_seconds(std::chrono::steady_clock::now() - start);
  found.seen = faults.seen();
  if (found.problem.empty()) {
    found.problem = belongings::left_since(before);
  }
  if (const std::string left = files_below(directory.path()); found.problem.empty() && !left.empty()) {
    found.problem = "files are left behind:\n" + left;
  }
  return found;
}

}  // namespace forebay::campaign
