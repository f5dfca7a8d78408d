#include "engine/planned_timeline.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

#include <fmt/format.h>

#include <forebay/plan/stalls.hpp>

namespace forebay::detail {
namespace {

constexpr std::array<std::string_view, 4> link_names{"h2d", "d2h", "storage read", "storage write"};

std::string_view name_of(plan::link l) { return link_names.at(static_cast<std::size_t>(l)); }

class planned_recorder {
 public:
  planned_recorder(telemetry::timeline& into, const planned_names& names, const plan::trace& t, const plan::schedule& s,
                   const plan::evaluation& e, time_point start)
      : into_(into), names_(names), trace_(t), schedule_(s), evaluation_(e), start_(start) {}

  void operations() {
    for (std::size_t i = 0; i < schedule_.operations.size(); ++i) {
      const plan::operation& op = schedule_.operations[i];
      if (op.what != plan::operation::kind::drop) {
        const bool moves = op.what == plan::operation::kind::transfer;
        record(lane_of(op), name_of_operation(op), evaluation_.times[i].start, evaluation_.times[i].finish,
               moves ? trace_.item_bytes[op.index] : 0);
      }
    }
  }

  void stalls() {
    for (const place where : {place::device, place::host}) {
      for (const plan::stall& s : plan::find_stalls(trace_, schedule_, evaluation_, where)) {
        for (const plan::stall_cause& c : s.causes) {
          const std::string cause =
              c.operation ? describe(schedule_.operations[*c.operation]) : std::string("what is not in the schedule");
          record("planned stall",
                 fmt::format("{} waits for {}", names_.steps[schedule_.operations[s.step].index], cause), c.start,
                 c.finish, 0);
        }
      }
    }
  }

 private:
  [[nodiscard]] std::string lane_of(const plan::operation& op) const {
    if (op.what == plan::operation::kind::step) {
      return trace_.steps[op.index].where == place::device ? "planned compute" : "planned host steps";
    }
    const bool storage = op.over == plan::link::storage_read || op.over == plan::link::storage_write;
    return storage ? fmt::format("planned {} {}", name_of(op.over), op.path)
                   : fmt::format("planned {}", name_of(op.over));
  }

  [[nodiscard]] std::string name_of_operation(const plan::operation& op) const {
    return op.what == plan::operation::kind::step ? names_.steps[op.index] : names_.items[op.index];
  }

  [[nodiscard]] std::string describe(const plan::operation& op) const {
    switch (op.what) {
      case plan::operation::kind::step:
        return names_.steps[op.index];
      case plan::operation::kind::transfer:
        return fmt::format("{} of {}", name_of(op.over), names_.items[op.index]);
      case plan::operation::kind::drop:
        break;
    }
    return fmt::format("the memory of {}", names_.items[op.index]);
  }

  void record(const std::string& lane, std::string name, double from, double to, byte_count bytes) {
    const auto at = [&](double seconds) {
      return start_ + std::chrono::duration_cast<duration>(std::chrono::duration<double>(seconds));
    };
    into_.record({into_.lane(lane), std::move(name), at(from), at(to), bytes});
  }

  telemetry::timeline& into_;
  const planned_names& names_;
  const plan::trace& trace_;
  const plan::schedule& schedule_;
  const plan::evaluation& evaluation_;
  time_point start_;
};

}  // namespace

void record_planned(telemetry::timeline& into, const planned_names& names, const plan::trace& t,
                    const plan::schedule& s, const plan::evaluation& e, time_point start) {
  planned_recorder recorder(into, names, t, s, e, start);
  recorder.operations();
  recorder.stalls();
}

}  // namespace forebay::detail
