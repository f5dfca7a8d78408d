// The Chrome trace-event format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#include <forebay/telemetry/timeline.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <forebay/base/error.hpp>

namespace forebay::telemetry {
namespace {

constexpr std::size_t flush_bytes = std::size_t{1} << 20U;

/// A JSON string literal, quotes included; bytes that are not UTF-8 become U+FFFD.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::int64_t nanoseconds(duration d) { return std::chrono::duration_cast<std::chrono::nanoseconds>(d).count(); }

/// Microseconds with all nanosecond digits: a double would lose them in long runs.
std::string microseconds(duration d) {
  const std::int64_t ns = nanoseconds(d);
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

/// Slices of one trace thread must not overlap, or viewers misplace them. So each lane gets as many threads as it has
/// slices at once, by greedy colouring in the order of starts, which needs the fewest.
struct layout {
  std::vector<std::size_t> order;                 // slices by start
  std::vector<std::size_t> row;                   // of each slice, within its lane
  std::vector<std::vector<time_point>> last_end;  // by lane and row
  std::vector<std::size_t> first_thread;          // of each lane

  layout(const std::vector<slice>& slices, std::size_t lane_count)
      : order(slices.size()), row(slices.size()), last_end(lane_count), first_thread(lane_count) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return slices[a].start < slices[b].start; });
    for (const std::size_t i : order) {
      auto& rows = last_end[slices[i].lane];
      const auto fit = std::find_if(rows.begin(), rows.end(), [&](time_point end) { return end <= slices[i].start; });
      row[i] = static_cast<std::size_t>(fit - rows.begin());
      if (fit == rows.end()) {
        rows.push_back(slices[i].end);
      } else {
        *fit = slices[i].end;
      }
    }
    std::size_t next = 1;
    for (std::size_t lane = 0; lane < lane_count; ++lane) {
      first_thread[lane] = next;
      next += rows_of(lane);
    }
  }

  [[nodiscard]] std::size_t rows_of(std::size_t lane) const { return std::max<std::size_t>(last_end[lane].size(), 1); }
  [[nodiscard]] std::size_t thread_of(const std::vector<slice>& slices, std::size_t i) const {
    return first_thread[slices[i].lane] + row[i];
  }
};

void append_names(std::string& out, const std::vector<std::string>& lanes, const layout& threads) {
  out += R"({"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"forebay"}})";
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    for (std::size_t row = 0; row < threads.rows_of(lane); ++row) {
      const std::size_t thread = threads.first_thread[lane] + row;
      const std::string name = row == 0 ? lanes[lane] : fmt::format("{} ({})", lanes[lane], row + 1);
      fmt::format_to(std::back_inserter(out),
                     ",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{0},\"name\":\"thread_name\",\"args\":{{\"name\":{1}}}}}"
                     ",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{0},\"name\":\"thread_sort_index\",\"args\":"
                     "{{\"sort_index\":{0}}}}}",
                     thread, quoted(name));
    }
  }
}

void append_slice(std::string& out, const slice& s, std::size_t thread, time_point origin) {
  fmt::format_to(std::back_inserter(out), ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{},\"name\":{},\"ts\":{},\"dur\":{}",
                 thread, quoted(s.name), microseconds(s.start - origin), microseconds(s.end - s.start));
  if (s.bytes != 0) {
    fmt::format_to(std::back_inserter(out), ",\"args\":{{\"bytes\":{}", s.bytes);
    if (const double seconds = to_seconds(s.end - s.start); seconds > 0.0) {
      fmt::format_to(std::back_inserter(out), ",\"bytes_per_second\":{:.0f}", static_cast<double>(s.bytes) / seconds);
    }
    out += '}';
  }
  out += '}';
}

/// Calls `sink(text)` with consecutive pieces of the trace, `text` being its to clear.
template <typename Sink>
void emit(const timeline& t, Sink&& sink) {
  const std::vector<slice> slices = t.slices();  // before the lanes, which only grow: each slice's lane is there
  const std::vector<std::string> lanes = t.lanes();
  const layout threads(slices, lanes.size());
  const time_point origin = slices.empty() ? time_point{} : slices[threads.order.front()].start;

  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  append_names(text, lanes, threads);
  for (const std::size_t i : threads.order) {
    append_slice(text, slices[i], threads.thread_of(slices, i), origin);
    if (text.size() >= flush_bytes) {
      sink(text);
    }
  }
  fmt::format_to(std::back_inserter(text), "\n],\"otherData\":{{\"dropped_slices\":{}}}}}\n", t.dropped());
  sink(text);
}

}  // namespace

std::string to_trace_json(const timeline& t) {
  std::string all;
  emit(t, [&](std::string& text) {
    all += text;
    text.clear();
  });
  return all;
}

void write_trace(const timeline& t, const std::string& path) {
  const auto fail = [&](const char* what, int code) {
    return io_error(fmt::format("can't {} the trace '{}': {}", what, path, describe_errno(code)), code);
  };
  struct closer {
    void operator()(std::FILE* f) const noexcept { std::fclose(f); }
  };
  std::unique_ptr<std::FILE, closer> file(std::fopen(path.c_str(), "we"));
  if (!file) {
    throw fail("open", errno);
  }
  emit(t, [&](std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size()) {
      throw fail("write", errno);
    }
    text.clear();
  });
  // The last bytes reach the file system only when the buffer is flushed: a full disk shows here.
  if (std::fclose(file.release()) != 0) {
    throw fail("write", errno);
  }
}

}  // namespace forebay::telemetry
