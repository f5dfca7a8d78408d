#include "engine_trainer.hpp"

#include <fmt/format.h>

#include <forebay/checkpoint/tensor_source.hpp>
#include <span>
#include <utility>

#include "initialise.hpp"
#include "interrupt.hpp"

namespace train_gpt {
namespace {

[[nodiscard]] std::vector<forebay::tensor_id> add_tensors(forebay::engine& engine, const tensor_table& tensors) {
  std::vector<forebay::tensor_id> ids;
  for (const forebay::tensor_spec& spec : tensors.specs()) {
    ids.push_back(engine.add(spec));
  }
  return ids;
}

[[nodiscard]] forebay::adamw make_adamw(forebay::engine& engine, const tensor_table& tensors,
                                        const std::vector<forebay::tensor_id>& ids,
                                        const optimizer_settings& optimizer) {
  std::vector<forebay::adamw_parameter> parameters;
  for (tensor_index p = 0; p < tensors.parameters().size(); ++p) {
    parameters.push_back({ids[p], ids[tensors.gradient(p)], tensors.parameters()[p].decay});
  }
  forebay::adamw_options options;
  options.lr = optimizer.lr;
  options.clip_norm = optimizer.clip;
  options.weight_decay = optimizer.weight_decay;
  options.kernels = optimizer.kernels;
  options.threads = optimizer.threads;
  options.subgroup_bytes = optimizer.subgroup_bytes;
  return {engine, std::move(parameters), options};
}

[[nodiscard]] std::vector<forebay::access> accesses_of(const model_step& step,
                                                       const std::vector<forebay::tensor_id>& ids) {
  std::vector<forebay::access> accesses;
  for (const model_access& access : step.accesses) {
    accesses.push_back({ids[access.tensor], access.how});
  }
  return accesses;
}

[[nodiscard]] forebay::step_options options_of(const model_step& step) {
  forebay::step_options options;
  options.workspace = step.workspace;
  options.phase = step.phase;
  return options;
}

/// The model's steps, then the update's.
[[nodiscard]] forebay::order make_order(const model<float>& model, const std::vector<forebay::tensor_id>& ids,
                                        forebay::adamw& adamw, std::vector<forebay::step_id>& steps) {
  forebay::order order;
  for (const model_step& step : model.steps()) {
    steps.push_back(order.step(step.name, accesses_of(step, ids), options_of(step)));
  }
  adamw.append_to(order);
  return order;
}

}  // namespace

engine_trainer::engine_trainer(const model<float>& model, const optimizer_settings& optimizer, std::uint64_t seed,
                               forebay::engine_options options)
    : model_(model),
      engine_(std::move(options)),
      ids_(add_tensors(engine_, model.tensors())),
      adamw_(make_adamw(engine_, model.tensors(), ids_, optimizer)) {
  forebay::order order = make_order(model, ids_, adamw_, steps_);
  engine_.set_order(std::move(order), recomputations());
  initialise_parameters(model.tensors(), seed,
                        [this](tensor_index t, std::span<const float> values, std::size_t offset) {
                          engine_.write(ids_[t], std::as_bytes(values), offset * sizeof(float));
                        });
}

engine_trainer::~engine_trainer() = default;

/// Enqueues a step on the compute stream and goes on: the stream waits for the data, and the lease's end is a point on
/// it.
void engine_trainer::launch(const model_step& step, forebay::step_id id, forebay::iteration& iteration) {
  forebay::stream& stream = engine_.compute_stream();
  const forebay::lease lease = iteration.acquire(id, stream);
  enqueue(step, lease, stream);
}

void engine_trainer::enqueue(const model_step& step, const forebay::lease& lease, forebay::stream& stream) {
  std::vector<std::span<std::byte>> buffers;
  for (const model_access& access : step.accesses) {
    buffers.push_back(lease.bytes(ids_[access.tensor]));
  }
  model_.compute().run_on(stream, [&step, buffers = std::move(buffers), workspace = lease.workspace()] {
    step.run(step_memory(step.accesses, buffers, workspace));
  });
}

/// The same functions on the same inputs, and so the same bits.
std::vector<forebay::recomputation> engine_trainer::recomputations() {
  std::vector<forebay::recomputation> all;
  for (const model_recomputation& r : model_.recomputations()) {
    forebay::recomputation again{steps_[r.before], {}};
    for (const std::size_t index : r.again) {
      const model_step& step = model_.steps()[index];
      forebay::recompute_step s{step.name + " again", accesses_of(step, ids_), options_of(step), {}, steps_[index]};
      s.options.phase = model_.steps()[r.before].phase;
      s.run = [this, &step](const forebay::lease& lease, forebay::stream* stream) { enqueue(step, lease, *stream); };
      again.steps.push_back(std::move(s));
    }
    all.push_back(std::move(again));
  }
  return all;
}

step_result engine_trainer::run(std::uint64_t step, const step_text& text) {
  const tensor_table& tensors = model_.tensors();
  for (std::size_t i = 0; i < text.size(); ++i) {
    engine_.write<std::uint8_t>(ids_[tensors.tokens[i]], text[i]);
  }
  forebay::iteration iteration = engine_.begin(step);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    throw_if_interrupted();
    launch(model_.steps()[i], steps_[i], iteration);
  }
  const forebay::update_report update = adamw_.update(iteration);
  step_result result;
  result.cost = iteration.finish();
  result.gradient_norm = update.gradient_norm;
  result.non_finite_tensor = update.non_finite_tensor;
  engine_.read<float>(ids_[tensors.loss], std::span(&result.loss, 1));
  return result;
}

std::vector<forebay::tensor_source> engine_trainer::state() {
  std::vector<forebay::tensor_id> wanted;
  for (const forebay::tensor_id tensor : engine_.tensors()) {
    const forebay::role role = engine_.spec(tensor).role;
    if (role == forebay::role::parameter || role == forebay::role::optimizer_state) {
      wanted.push_back(tensor);
    }
  }
  return forebay::engine_sources(engine_, wanted);
}

forebay::tier_bytes engine_trainer::minimum_capacity(const model<float>& model, const optimizer_settings& optimizer,
                                                     forebay::engine_options options) {
  forebay::engine engine(std::move(options));
  const std::vector<forebay::tensor_id> ids = add_tensors(engine, model.tensors());
  forebay::adamw adamw = make_adamw(engine, model.tensors(), ids, optimizer);
  std::vector<forebay::step_id> steps;
  return engine.minimum_capacity(make_order(model, ids, adamw, steps));
}

}  // namespace train_gpt
