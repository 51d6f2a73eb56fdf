// lstm: the loss of the character model, and its gradient by a tape of what each layer computed in each step.

#include <cmath>
#include <cstdint>
#include <vector>

using Index = std::int64_t;

namespace {

// What a layer keeps of a step: arrays of `bits` numbers, one after the other.
enum Kept { BELOW, HIDDEN, CELL, FORGET, WRITE, READ, CHANGE, SQUASHED, KEPT };

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Model {
  Index layers, steps, bits;
  const double *main, *extra, *state, *sequence;

  const double *weights(Index layer) const { return main + layer * 8 * bits; }

  // The loss; with a tape, of steps × layers × KEPT × bits numbers, all that a step back needs, and the tops of the
  // network before their normalization, steps × bits.
  double forward(double *tape, double *tops) const {
    std::vector<double> states(state, state + 2 * layers * bits), below(bits), y(bits);
    std::vector<double> unused(KEPT * bits);
    double total = 0;
    for (Index t = 0; t < steps; ++t) {
      for (Index b = 0; b < bits; ++b) below[b] = sequence[t * bits + b] * extra[b];
      for (Index l = 0; l < layers; ++l) {
        double *kept = tape ? tape + (t * layers + l) * KEPT * bits : unused.data();
        step(l, &states[2 * l * bits], &states[(2 * l + 1) * bits], below.data(), kept);
      }
      double sum = 2;
      for (Index b = 0; b < bits; ++b) {
        y[b] = below[b] * extra[bits + b] + extra[2 * bits + b];
        if (tops) tops[t * bits + b] = below[b];
      }
      for (Index b = 0; b < bits; ++b) sum += std::exp(y[b]);
      double normalizer = std::log(sum);
      for (Index b = 0; b < bits; ++b) total += sequence[(t + 1) * bits + b] * (y[b] - normalizer);
    }
    return -total / (bits * steps);
  }

  void step(Index layer, double *hidden, double *cell, double *below, double *kept) const {
    const double *w = weights(layer), *bias = w + 4 * bits;
    for (Index b = 0; b < bits; ++b) {
      double f = sigmoid(below[b] * w[b] + bias[b]);
      double i = sigmoid(hidden[b] * w[bits + b] + bias[bits + b]);
      double o = sigmoid(below[b] * w[2 * bits + b] + bias[2 * bits + b]);
      double z = std::tanh(hidden[b] * w[3 * bits + b] + bias[3 * bits + b]);
      double c = cell[b] * f + i * z, s = std::tanh(c);
      kept[BELOW * bits + b] = below[b];
      kept[HIDDEN * bits + b] = hidden[b];
      kept[CELL * bits + b] = cell[b];
      kept[FORGET * bits + b] = f;
      kept[WRITE * bits + b] = i;
      kept[READ * bits + b] = o;
      kept[CHANGE * bits + b] = z;
      kept[SQUASHED * bits + b] = s;
      cell[b] = c;
      below[b] = hidden[b] = o * s;
    }
  }

  void step_back(Index layer, double *by_hidden, double *by_cell, double *by_below, const double *kept,
                 double *by_weights) const {
    const double *w = weights(layer);
    double *by_bias = by_weights + 4 * bits;
    for (Index b = 0; b < bits; ++b) {
      double below = kept[BELOW * bits + b], hidden = kept[HIDDEN * bits + b], cell = kept[CELL * bits + b];
      double f = kept[FORGET * bits + b], i = kept[WRITE * bits + b], o = kept[READ * bits + b];
      double z = kept[CHANGE * bits + b], s = kept[SQUASHED * bits + b];
      double h = by_hidden[b] + by_below[b], c = by_cell[b] + h * o * (1 - s * s);
      double df = c * cell * f * (1 - f), di = c * z * i * (1 - i);
      double ro = h * s * o * (1 - o), dz = c * i * (1 - z * z);
      by_weights[b] += df * below;
      by_weights[bits + b] += di * hidden;
      by_weights[2 * bits + b] += ro * below;
      by_weights[3 * bits + b] += dz * hidden;
      by_bias[b] += df;
      by_bias[bits + b] += di;
      by_bias[2 * bits + b] += ro;
      by_bias[3 * bits + b] += dz;
      by_cell[b] = c * f;
      by_hidden[b] = di * w[bits + b] + dz * w[3 * bits + b];
      by_below[b] = df * w[b] + ro * w[2 * bits + b];
    }
  }
};

}  // namespace

extern "C" double objective(Index layers, Index characters, Index bits, const double *main, const double *extra,
                            const double *state, const double *sequence) {
  return Model{layers, characters - 1, bits, main, extra, state, sequence}.forward(nullptr, nullptr);
}

extern "C" void jacobian(Index layers, Index characters, Index bits, const double *main, const double *extra,
                         const double *state, const double *sequence, double *by_main, double *by_extra) {
  Model model{layers, characters - 1, bits, main, extra, state, sequence};
  const Index steps = model.steps;
  static std::vector<double> tape, tops;  // kept between calls, as ours are
  tape.resize(steps * layers * KEPT * bits);
  tops.resize(steps * bits);
  model.forward(tape.data(), tops.data());
  for (Index k = 0; k < 8 * layers * bits; ++k) by_main[k] = 0;
  for (Index k = 0; k < 3 * bits; ++k) by_extra[k] = 0;
  std::vector<double> by_states(2 * layers * bits), by_below(bits), y(bits);
  const double scale = -1.0 / (bits * steps);
  for (Index t = steps; t-- > 0;) {
    const double *top = &tops[t * bits], *next = sequence + (t + 1) * bits;
    double sum = 2, count = 0;
    for (Index b = 0; b < bits; ++b) y[b] = std::exp(top[b] * extra[bits + b] + extra[2 * bits + b]);
    for (Index b = 0; b < bits; ++b) sum += y[b], count += next[b];
    for (Index b = 0; b < bits; ++b) {
      double by_y = scale * (next[b] - count * y[b] / sum);
      by_extra[bits + b] += by_y * top[b];
      by_extra[2 * bits + b] += by_y;
      by_below[b] = by_y * extra[bits + b];
    }
    for (Index l = layers; l-- > 0;)
      model.step_back(l, &by_states[2 * l * bits], &by_states[(2 * l + 1) * bits], by_below.data(),
                      &tape[(t * layers + l) * KEPT * bits], by_main + l * 8 * bits);
    for (Index b = 0; b < bits; ++b) by_extra[b] += by_below[b] * sequence[t * bits + b];
  }
}
