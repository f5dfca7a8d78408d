// A network of one's own through forebay: six residual layers learn y = sin(3x), in tiers too small to hold them.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <forebay/forebay.hpp>

using namespace forebay;
using floats = std::span<float>;
constexpr unsigned layers = 6, width = 32, batch = 64;

void forward(floats w, floats x, floats y) {  // y = x + tanh(x w)
  for (unsigned at = 0; at < batch * width; ++at) {
    float sum = 0;
    for (unsigned i = 0; i < width; ++i) sum += x[at / width * width + i] * w[i * width + at % width];
    y[at] = x[at] + std::tanh(sum);
  }
}
void backward(floats w, floats x, floats y, floats d, floats dw) {  // d: the gradient of y, then that of x
  for (float& sum : dw) sum = 0;
  for (unsigned row = 0; row < batch * width; row += width) {
    float g[width];
    for (unsigned j = 0; j < width; ++j) g[j] = d[row + j] * (1 - std::pow(y[row + j] - x[row + j], 2.0F));
    for (unsigned at = 0; at < width * width; ++at) dw[at] += x[row + at / width] * g[at % width];
    for (unsigned at = 0; at < width * width; ++at) d[row + at / width] += w[at] * g[at % width];
  }
}
void compare(floats y, floats x, floats d, floats loss) {  // the mean squared error, and its gradient
  loss[0] = 0;
  for (unsigned at = 0; at < y.size(); ++at) {
    d[at] = 2 * (y[at] - std::sin(3 * x[at])) / static_cast<float>(y.size());
    loss[0] += (y[at] - std::sin(3 * x[at])) * d[at] / 2;
  }
}

int main() {
  const storage_path folder{std::filesystem::temp_directory_path() / "forebay-quickstart"};
  engine memory({.device = emulated_device({64_KiB}), .host = {96_KiB}, .storage = {folder}, .chunk = 4_KiB, .io = {}});
  std::vector<tensor_id> w, dw, x{memory.add({"x", dtype::f32, {batch, width}, role::buffer})};
  std::vector<adamw_parameter> parameters;
  for (unsigned l = 0; l < layers; ++l) {
    w.push_back(memory.add({"w" + std::to_string(l), dtype::f32, {width, width}, role::parameter}));
    dw.push_back(memory.add({"dw" + std::to_string(l), dtype::f32, {width, width}, role::gradient}));
    x.push_back(memory.add({"y" + std::to_string(l), dtype::f32, {batch, width}, role::activation}));
    parameters.push_back({w[l], dw[l]});
  }
  const tensor_id d = memory.add({"d", dtype::f32, {batch, width}, role::activation});
  const tensor_id loss = memory.add({"loss", dtype::f32, {1}, role::buffer});
  adamw optimizer(memory, parameters, {.lr = 3e-3F, .subgroup_bytes = 32_KiB});

  order plan;  // which steps use what: so the engine knows what to fetch, and when
  std::vector<step_id> steps;
  for (unsigned l = 0; l < layers; ++l) steps.push_back(plan.step("up", {reads(w[l]), reads(x[l]), creates(x[l + 1])}));
  steps.push_back(plan.step("loss", {reads(x[layers]), reads(x[0]), creates(d), creates(loss)}));
  for (unsigned l = layers; l-- > 0;)
    steps.push_back(plan.step("down", {reads(w[l]), reads(x[l]), reads(x[l + 1]), writes(d), creates(dw[l])}));
  optimizer.append_to(plan);
  memory.set_order(plan);

  std::vector<float> noise(batch * width);  // the input, and the first weights
  for (unsigned i = 0; i < noise.size(); ++i) noise[i] = std::sin(static_cast<float>(i * i));
  memory.write<float>(x[0], noise);
  for (float& value : noise) value *= 0.1F;
  for (const tensor_id t : w) memory.write<float>(t, floats(noise).first(width * width));

  for (unsigned n = 0; n <= 200; ++n) {
    iteration pass = memory.begin(n);
    auto run = [&, next = steps.begin()](auto work, auto... tensors) mutable {
      const lease held = pass.acquire(*next++, memory.compute_stream());  // the stream waits for the data, we do not
      memory.compute_stream().launch([work, ... data = held.data<float>(tensors)] { work(data...); });
    };
    for (unsigned l = 0; l < layers; ++l) run(forward, w[l], x[l], x[l + 1]);
    run(compare, x[layers], x[0], d, loss);
    for (unsigned l = layers; l-- > 0;) run(backward, w[l], x[l], x[l + 1], d, dw[l]);
    optimizer.update(pass);
    const auto read = pass.finish().moved.storage_read;
    memory.read(loss, floats(noise).first(1));
    if (n % 40 == 0) std::printf("step %3u: loss %.4f, %s read\n", n, noise[0], format_bytes(read).c_str());
  }
}
