#pragma once

/// Marks a function that runs on the host and in a kernel alike. Its operations are IEEE ones and nothing is fused
/// (`-ffp-contract=off`, `-fmad=false`), so that both give the same bits.
#if defined(__CUDACC__)
#define FOREBAY_HOST_DEVICE __host__ __device__
#else
#define FOREBAY_HOST_DEVICE
#endif
