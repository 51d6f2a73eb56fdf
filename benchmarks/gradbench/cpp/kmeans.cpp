// kmeans: the cost of a clustering, and gradient over diagonal of the Hessian, both by hand.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

using Index = std::int64_t;

namespace {

// Calls each(point, nearest centroid, squared distance).  Centroids are transposed, so that distances to all of them
// are computed in vectors.
template <class Each>
void assign(Index n, Index k, Index d, const double *points, const double *centroids, Each each) {
  std::vector<double> transposed(k * d), distances(k);
  for (Index j = 0; j < k; ++j)
    for (Index a = 0; a < d; ++a) transposed[a * k + j] = centroids[j * d + a];
  for (Index i = 0; i < n; ++i) {
    std::fill(distances.begin(), distances.end(), 0.0);
    for (Index a = 0; a < d; ++a) {
      const double at = points[i * d + a], *row = &transposed[a * k];
      for (Index j = 0; j < k; ++j) distances[j] += (at - row[j]) * (at - row[j]);
    }
    Index best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (Index j = 0; j < k; ++j)
      if (distances[j] < least) least = distances[j], best = j;
    each(i, best, least);
  }
}

}  // namespace

extern "C" double cost(Index n, Index k, Index d, const double *points, const double *centroids) {
  double total = 0;
  assign(n, k, d, points, centroids, [&](Index, Index, double distance) { total += distance; });
  return total;
}

extern "C" void dir(Index n, Index k, Index d, const double *points, const double *centroids, double *step) {
  std::vector<double> curvature(k);
  std::fill(step, step + k * d, 0.0);
  assign(n, k, d, points, centroids, [&](Index i, Index j, double) {
    curvature[j] += 2;
    for (Index a = 0; a < d; ++a) step[j * d + a] += 2 * (centroids[j * d + a] - points[i * d + a]);
  });
  for (Index j = 0; j < k; ++j)
    for (Index a = 0; a < d; ++a) step[j * d + a] /= curvature[j];
}
