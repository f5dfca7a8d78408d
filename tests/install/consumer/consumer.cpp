#include <cstdio>
#include <vector>

#include <forebay/forebay.hpp>

// Eight tensors of 64 KiB pass through a device tier that holds three: each is incremented once per iteration.
int main() {
  constexpr std::size_t elements = 16 * 1024;
  constexpr int iterations = 3;

  forebay::engine_options options;
  options.device = forebay::emulated_device({.capacity = 192 * 1024});
  options.host.capacity = forebay::parse_bytes("2MiB");
  forebay::engine engine(std::move(options));

  std::vector<forebay::tensor_id> tensors;
  std::vector<forebay::step_id> steps;
  forebay::order order;
  for (int i = 0; i < 8; ++i) {
    const std::string name = "t" + std::to_string(i);
    tensors.push_back(engine.add({.name = name, .type = forebay::dtype::f32, .shape = {elements}}));
    steps.push_back(order.step("increment " + name, {forebay::writes(tensors.back())}));
  }
  engine.set_order(order);
  for (const forebay::tensor_id tensor : tensors) {
    engine.zero(tensor);
  }

  for (int n = 0; n < iterations; ++n) {
    forebay::iteration iteration = engine.begin(static_cast<std::uint64_t>(n));
    for (std::size_t i = 0; i < steps.size(); ++i) {
      forebay::stream& stream = engine.compute_stream();
      const forebay::lease lease = iteration.acquire(steps[i], stream);
      stream.launch([data = lease.data<float>(tensors[i])] {
        for (float& x : data) {
          x += 1.0F;
        }
      });
    }
    iteration.finish();
  }

  std::vector<float> values(elements);
  for (const forebay::tensor_id tensor : tensors) {
    engine.read(tensor, std::span<float>(values));
    for (const float value : values) {
      if (value != static_cast<float>(iterations)) {
        std::printf("expected %d, found %g\n", iterations, static_cast<double>(value));
        return 1;
      }
    }
  }
  return 0;
}
