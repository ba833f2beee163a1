#pragma once
#include <string>
#include <vector>

namespace example {

/// A line of a chart: y over 1, 2, 3, ...
struct Series {
  std::string name;
  std::string colour;  ///< as CSS has it
  std::vector<double> values;
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Series> series;
};

/// The chart as an SVG image; both axes are linear, and y begins at 0.
std::string to_svg(const Chart& chart);

}  // namespace example
