#include <forebay/checkpoint/tensor_source.hpp>

namespace forebay {

tensor_source engine_source(engine& from, tensor_id tensor) {
  const tensor_spec& spec = from.spec(tensor);
  return {spec.name, spec.type, spec.shape, [&from, tensor](byte_count offset, std::span<std::byte> out) {
            if (!out.empty()) {
              from.read(tensor, out, offset);
            }
          }};
}

std::vector<tensor_source> engine_sources(engine& from, std::span<const tensor_id> tensors) {
  std::vector<tensor_source> sources;
  sources.reserve(tensors.size());
  for (const tensor_id tensor : tensors) {
    sources.push_back(engine_source(from, tensor));
  }
  return sources;
}

}  // namespace forebay
