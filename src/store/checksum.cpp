#include "store/checksum.hpp"

#ifdef FOREBAY_XXH_X86_DISPATCH
#include <xxh_x86dispatch.h>  // gives the names of xxhash.h to the functions that choose
#else
#include <xxhash.h>
#endif

namespace forebay::store_detail {

std::uint64_t checksum_of(const std::byte* memory, byte_count bytes) noexcept { return XXH3_64bits(memory, bytes); }

}  // namespace forebay::store_detail
