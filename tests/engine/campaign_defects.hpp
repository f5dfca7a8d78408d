#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <forebay/io/backend.hpp>

namespace forebay::campaign {

/// Defects that storage code has been seen with, each as a layer over a right backend.
enum class defect : std::uint8_t {
  result_never_read,      ///< whatever the kernel says, the transfer is reported as done
  errno_lost,             ///< a failure is reported as a short transfer without a reason
  partial_submit,         ///< what the queue did not take counts as submitted: nobody ever completes it
  partial_success,        ///< what the queue did not take counts as done
  short_length,           ///< the length is kept in too few bits: a chunk of that size becomes nothing
  short_offset,           ///< the offset is kept in too few bits
  tail_dropped,           ///< what is no multiple of 8 KiB is left out
  completes_early,        ///< the completion comes before the transfer, whose memory is used again
  completions_exchanged,  ///< of two operations in flight each gets the other's completion
  descriptor_left,        ///< a file is opened and never closed
  file_left               ///< a file beside the pages stays
};

/// Plants a defect.
[[nodiscard]] std::function<std::unique_ptr<io::backend>(std::unique_ptr<io::backend>)> plant(defect what);

}  // namespace forebay::campaign
