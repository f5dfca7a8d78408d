// What a store makes of transfers that failed: another path for a write, a typed error otherwise.
#include <cerrno>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

#include "store/page_store_impl.hpp"

namespace forebay {
namespace {

/// Errors that speak of the caller's memory or of a request that no path would take.
bool is_the_requests_fault(int error_number) { return error_number == EFAULT || error_number == EINVAL; }

std::string reason(const io::result& outcome) {
  return outcome.error_number != 0 ? describe_errno(outcome.error_number)
                                   : std::string("errno 0, the transfer ended short");
}

}  // namespace

/// A write that its path refuses for good goes to another path, whose operation it starts. False: none can take it.
bool page_store::impl::go_elsewhere(page_transfer& t) noexcept {
  if (is_the_requests_fault(t.outcome.error_number)) {
    return false;
  }
  const bool in_window = buffered(t);
  try {
    const std::scoped_lock lock(table_mutex);
    retire(t);
    if (!t.rerouted) {
      t.rerouted = true;
      t.fault_path = t.path;
      t.fault_offset = t.operation.offset;
      t.fault = t.outcome;
    }
    if (!table->move_chunk(*t.entry, t.chunk)) {
      return false;
    }
  } catch (...) {  // out of memory: the failure of the write is reported
    return false;
  }
  if (in_window) {
    leave_window(t);
  }
  t.outcome = {};
  t.parts_left = 1;
  aim(t);
  start_io(t);
  return true;
}

/// Under `table_mutex`.
void page_store::impl::retire(const page_transfer& t) {
  if (!table->retire(t.path)) {
    return;
  }
  degradations.push_back(
      fmt::format("{}: a write failed for good ({}): the path is retired for writing, its share goes to the other "
                  "paths, and what lies there is still read",
                  table->paths()[t.path].directory(), reason(t.outcome)));
}

/// Throws what the outcome deserves.
void page_store::impl::judge(page_transfer& t) {
  if (t.outcome.error_number != 0 || t.outcome.bytes != t.operation.bytes) {
    const io::result first = t.rerouted ? t.fault : t.outcome;
    std::string what =
        fmt::format("{}: wanted {} bytes, got {}: {}", describe(t), t.operation.bytes, first.bytes, reason(first));
    if (t.rerouted && t.path != t.fault_path) {
      what += fmt::format("; then {} failed too: {}", table->paths()[t.path].directory(), reason(t.outcome));
    } else if (t.rerouted && options.paths.size() > 1) {
      what += "; no other path has room for it";
    }
    throw io_error(what, first.error_number);
  }
  if (t.rereads > 0) {
    const std::uint64_t found = checksum(t);
    if (found != t.entry->chunks[t.chunk].sum) {
      throw corruption_error(fmt::format(
          "{}: wanted {} bytes with checksum {:016x}, got {} bytes with {:016x}, twice (errno 0): the drive "
          "or the memory returns wrong data",
          describe(t), t.operation.bytes, t.entry->chunks[t.chunk].sum, t.outcome.bytes, found));
    }
  }
}

std::string page_store::impl::describe(const page_transfer& t) const {
  const std::uint32_t path = t.rerouted ? t.fault_path : t.path;
  const byte_count offset = t.rerouted ? t.fault_offset : t.operation.offset;
  return fmt::format("storage {} of page '{}', chunk {} of {}, in {} at offset {}",
                     t.kind == io::operation_kind::read ? "read" : "write", t.entry->name, t.chunk,
                     t.entry->chunks.size(), table->paths()[path].file.path().string(), offset);
}

}  // namespace forebay
