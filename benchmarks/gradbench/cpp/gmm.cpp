// gmm: the log posterior without its constant, and its gradient by hand: observation by observation, forward over the
// components and at once back, so that nothing but the components of one observation is kept.  The triangle of a
// component is used as it is packed, column by column.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

using Index = std::int64_t;

namespace {

double logsumexp(Index n, const double *x) {
  double largest = *std::max_element(x, x + n), sum = 0;
  for (Index i = 0; i < n; ++i) sum += std::exp(x[i] - largest);
  return largest + std::log(sum);
}

struct Slopes {
  double *alpha, *mu, *q, *l;
};

double density(Index n, Index d, Index k, double gamma, double m, const double *alpha, const double *mu,
               const double *q, const double *l, const double *x, const Slopes *slopes) {
  const Index packed = d * (d - 1) / 2;
  std::vector<double> scale(k * d), start(k), logits(k), weights(k), distance(k * d), image(k * d), pull(k * d);
  double total = 0, sum_of_q = 0, frobenius = 0;
  for (Index c = 0; c < k; ++c) {
    start[c] = alpha[c];
    for (Index j = 0; j < d; ++j) {
      scale[c * d + j] = std::exp(q[c * d + j]);
      start[c] += q[c * d + j];
      sum_of_q += q[c * d + j];
      frobenius += scale[c * d + j] * scale[c * d + j];
    }
    for (Index j = 0; j < packed; ++j) frobenius += l[c * packed + j] * l[c * packed + j];
  }
  for (Index i = 0; i < n; ++i) {
    for (Index c = 0; c < k; ++c) {
      double *away = &distance[c * d], *y = &image[c * d], square = 0;
      for (Index j = 0; j < d; ++j) away[j] = x[i * d + j] - mu[c * d + j];
      for (Index j = 0; j < d; ++j) y[j] = scale[c * d + j] * away[j];
      const double *column = l + c * packed;
      for (Index j = 0; j + 1 < d; column += d - ++j)
        for (Index r = j + 1; r < d; ++r) y[r] += column[r - j - 1] * away[j];
      for (Index j = 0; j < d; ++j) square += y[j] * y[j];
      logits[c] = start[c] - 0.5 * square;
    }
    double all = logsumexp(k, logits.data());
    total += all;
    if (!slopes) continue;
    for (Index c = 0; c < k; ++c) {
      double weight = std::exp(logits[c] - all);
      weights[c] += weight;
      const double *away = &distance[c * d], *y = &image[c * d];
      for (Index j = 0; j < d; ++j) pull[c * d + j] += weight * y[j];
      for (Index j = 0; j < d; ++j) slopes->q[c * d + j] -= weight * y[j] * away[j];
      double *column = slopes->l + c * packed;
      for (Index j = 0; j + 1 < d; column += d - ++j) {
        double pushed = weight * away[j];
        for (Index r = j + 1; r < d; ++r) column[r - j - 1] -= pushed * y[r];
      }
    }
  }
  double normalizer = logsumexp(k, alpha);
  if (slopes) {
    for (Index c = 0; c < k; ++c) {
      slopes->alpha[c] = weights[c] - n * std::exp(alpha[c] - normalizer);
      const double *column = l + c * packed;
      for (Index j = 0; j < d; column += d - ++j) {
        double back = scale[c * d + j] * pull[c * d + j];
        for (Index r = j + 1; r < d; ++r) back += column[r - j - 1] * pull[c * d + r];
        slopes->mu[c * d + j] = back;
      }
      for (Index j = 0; j < d; ++j) {
        double s = scale[c * d + j], &slope = slopes->q[c * d + j];
        slope = slope * s + weights[c] - gamma * gamma * s * s + m;
      }
      for (Index j = 0; j < packed; ++j) slopes->l[c * packed + j] -= gamma * gamma * l[c * packed + j];
    }
  }
  return total - n * normalizer - 0.5 * gamma * gamma * frobenius + m * sum_of_q;
}

}  // namespace

extern "C" double objective(Index n, Index d, Index k, double gamma, double m, const double *alpha, const double *mu,
                            const double *q, const double *l, const double *x) {
  return density(n, d, k, gamma, m, alpha, mu, q, l, x, nullptr);
}

extern "C" void jacobian(Index n, Index d, Index k, double gamma, double m, const double *alpha, const double *mu,
                         const double *q, const double *l, const double *x, double *by_alpha, double *by_mu,
                         double *by_q, double *by_l) {
  std::fill(by_q, by_q + k * d, 0.0);
  std::fill(by_l, by_l + k * d * (d - 1) / 2, 0.0);
  Slopes slopes{by_alpha, by_mu, by_q, by_l};
  density(n, d, k, gamma, m, alpha, mu, q, l, x, &slopes);
}
