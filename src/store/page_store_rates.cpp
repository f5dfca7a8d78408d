// How a store's shares follow the rates that it measures.
#include "store/page_store_impl.hpp"

namespace forebay {

void page_store::impl::adapt() {
  if (!options.adaptive || meters.size() < 2) {
    return;
  }
  std::vector<store_detail::measured_rate> rates;
  rates.reserve(meters.size());
  for (const store_detail::rate_meter& meter : meters) {
    rates.push_back(meter.rate());
  }
  table->weights().observe(rates);
}

std::vector<path_rate> page_store::impl::measured_rates() const {
  const std::scoped_lock lock(table_mutex);
  const std::vector<double> shares = table->shares();
  std::vector<path_rate> result;
  for (std::size_t i = 0; i < meters.size(); ++i) {
    const store_detail::path_space& space = table->paths()[i];
    const store_detail::measured_rate rate = meters[i].rate();
    path_rate known;
    known.directory = options.paths[i].directory;
    known.read_bytes_per_second = rate.read;
    known.write_bytes_per_second = rate.write;
    known.bytes_per_second = store_detail::rate_under_mix(rate, rate.bytes_read, rate.bytes_written);
    known.share = shares[i];
    known.used = space.used();
    known.capacity = space.holes.capacity();
    known.retired = space.retired;
    result.push_back(std::move(known));
  }
  return result;
}

}  // namespace forebay
