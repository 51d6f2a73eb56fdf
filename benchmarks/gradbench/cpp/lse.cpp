// lse: the logarithm of a sum of exponentials, and softmax, its gradient.

#include <algorithm>
#include <cmath>
#include <cstdint>

using Index = std::int64_t;

extern "C" double primal(Index n, const double *x) {
  double largest = *std::max_element(x, x + n), sum = 0;
  for (Index i = 0; i < n; ++i) sum += std::exp(x[i] - largest);
  return largest + std::log(sum);
}

extern "C" void gradient(Index n, const double *x, double *slope) {
  double largest = *std::max_element(x, x + n), sum = 0;
  for (Index i = 0; i < n; ++i) slope[i] = std::exp(x[i] - largest);
  for (Index i = 0; i < n; ++i) sum += slope[i];
  for (Index i = 0; i < n; ++i) slope[i] /= sum;
}
