// How a store finds the depth and the size of its transfers.
#include <algorithm>

#include <forebay/store/detail/path_probe.hpp>

#include "store/page_store_impl.hpp"

namespace forebay {
namespace {

path_tuning as_tuning(const store_detail::shape_rate& chosen) {
  return {chosen.shape.depth, chosen.shape.block, chosen.read, chosen.write};
}

double both_rates(const path_tuning& path) {
  return store_detail::shape_rate{{}, path.read_bytes_per_second, path.write_bytes_per_second}.both();
}

}  // namespace

void page_store::impl::tune() {
  const io::backend_options& given = options.io;
  // Interceptors and emulated rates are there to decide about the run's transfers; the pool's depth is its threads.
  const bool plain = given.faults == nullptr && !pacer->limits_anything() && backend->name() == "io_uring";
  if (tuning.measured || (given.depth != 0 && given.merge != 0) || !plain || table->account().used() > 0) {
    return;
  }
  const std::vector<store_detail::transfer_shape> shapes = store_detail::shapes_to_try(given.depth, given.merge);
  unsigned depth = 0;
  byte_count merge = 0;
  for (std::size_t i = 0; i < tuning.paths.size(); ++i) {
    const store_detail::path_space& path = table->paths()[i];
    if (!path.file.layout().direct || path.preallocated < store_detail::least_probed_share) {
      continue;
    }
    const auto chosen = store_detail::choose_shape(
        store_detail::measure_shapes(*backend, path.file.descriptor(), path.preallocated, table->unit(), shapes));
    if (chosen) {
      tuning.paths[i] = as_tuning(*chosen);
      depth = std::max(depth, chosen->shape.depth);
      merge = std::max(merge, chosen->shape.block);
      tuning.measured = true;
    }
  }
  if (tuning.measured) {
    tuning.depth = given.depth != 0 ? given.depth : depth;
    tuning.merge = given.merge != 0 ? given.merge : merge;
    backend->tune(tuning.depth, tuning.merge);
    share_as_measured();
  }
}

/// Until the run has measured the paths under its own load, equal weights give way to what the probe found.
void page_store::impl::share_as_measured() {
  const bool weighted =
      std::any_of(options.paths.begin(), options.paths.end(), [](const storage_path& path) { return path.weight > 0; });
  std::vector<double> rates;
  for (const path_tuning& path : tuning.paths) {
    rates.push_back(both_rates(path));
  }
  if (options.adaptive && !weighted && *std::min_element(rates.begin(), rates.end()) > 0) {
    table->weights().set(std::move(rates));
  }
}

}  // namespace forebay
