// Records the numbers on standard input and prints the histogram's encoding and quantiles, so that a test can
// compare it with another HdrHistogram library.
#include <cstdio>
#include <iostream>

#include "measure/histogram_codec.h"

int main() {
  perflab::measure::HistogramMemory memory(1);
  perflab::measure::Histogram histogram(memory);
  for (std::int64_t value = 0; std::cin >> value;) histogram.record(value, 0);
  std::cout << perflab::measure::encode_v2_base64(histogram) << '\n';
  for (const double quantile : {0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
    std::cout << histogram.value_at_quantile(quantile).value_or(-1) << '\n';
  }
}
