#include <forebay/io/backend.hpp>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

#include "io/thread_backend.hpp"
#include "io/uring_backend.hpp"

namespace forebay::io {

namespace {

backend_options with_usual_limits(backend_options options) {
  options.depth = options.depth == 0 ? usual_depth : options.depth;
  options.merge = options.merge == 0 ? usual_merge : options.merge;
  return options;
}

std::unique_ptr<backend> make_unwrapped(const backend_options& options) {
  std::vector<std::string> degradations;
  if (options.kind != backend_kind::threads) {
    try {
      return std::make_unique<uring_backend>(options);
    } catch (const unsupported_error& refused) {
      if (options.kind == backend_kind::uring) {
        throw;
      }
      degradations.push_back(fmt::format("{}; reads and writes go through threads instead", refused.what()));
    }
  }
  return std::make_unique<thread_backend>(options, std::move(degradations));
}

}  // namespace

std::unique_ptr<backend> make_backend(const backend_options& options) {
  std::unique_ptr<backend> made = make_unwrapped(with_usual_limits(options));
  return options.wrap == nullptr ? std::move(made) : options.wrap(std::move(made));
}

}  // namespace forebay::io
