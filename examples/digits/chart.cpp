#include "chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace example {

namespace {

constexpr double width = 720;
constexpr double height = 440;
constexpr double left = 72;
constexpr double right = 24;
constexpr double top = 52;
constexpr double bottom = 60;

/// A step between ticks, 1, 2 or 5 times a power of ten, that gives at most `most` of them.
double tick_step(double range, int most) {
  const double rough = range / most;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return out;
}

class Writer {
 public:
  explicit Writer(const Chart& chart) : chart_(chart) {
    std::size_t longest = 2;
    double largest = 1e-9;
    for (const Series& s : chart.series) {
      longest = std::max(longest, s.values.size());
      for (const double v : s.values) largest = std::isfinite(v) ? std::max(largest, v) : largest;
    }
    x_end_ = static_cast<double>(longest);
    x_step_ = std::max(1.0, tick_step(x_end_, 10));
    y_step_ = tick_step(largest, 6);
    y_end_ = std::ceil(largest / y_step_) * y_step_;
  }

  std::string write() {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
        "{1}\" "
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#333\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
        width, height);
    text(left, 30, "start", chart_.title, "font-size=\"17\" font-weight=\"bold\"");
    axes();
    double y = top + 8;
    for (const Series& s : chart_.series) {
      line(s);
      legend(s, y);
      y += 20;
    }
    return out_ + "</svg>\n";
  }

 private:
  [[nodiscard]] double x_of(double x) const {
    return left + (x - 1) / (x_end_ - 1) * (width - left - right);
  }
  [[nodiscard]] double y_of(double y) const {
    return height - bottom - y / y_end_ * (height - top - bottom);
  }

  void text(double x, double y, std::string_view anchor, const std::string& what,
            std::string_view more = "") {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y,
                        anchor, more, escaped(what));
  }

  void axes() {
    for (int i = 0; i <= static_cast<int>(std::lround(y_end_ / y_step_)); ++i) {
      const double y = i * y_step_;
      out_ += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"{}\"/>\n", left, y_of(y),
                          width - right, i == 0 ? "#333" : "#e3e3e3");
      text(left - 8, y_of(y) + 4, "end", fmt::format("{:.6g}", y));
    }
    for (int i = 1; i * x_step_ <= x_end_; ++i) {
      const double x = i * x_step_;
      out_ += fmt::format("<path d=\"M{:.1f} {:.1f}v5\" stroke=\"#333\"/>\n", x_of(x), y_of(0));
      text(x_of(x), y_of(0) + 20, "middle", fmt::format("{:.6g}", x));
    }
    text((left + width - right) / 2, height - 16, "middle", chart_.x_label);
    const double middle = (top + height - bottom) / 2;
    text(22, middle, "middle", chart_.y_label,
         fmt::format("transform=\"rotate(-90 22 {:.1f})\"", middle));
  }

  void line(const Series& s) {
    std::string points;
    for (std::size_t i = 0; i < s.values.size(); ++i) {
      if (!std::isfinite(s.values[i])) continue;
      points += fmt::format("{:.1f},{:.1f} ", x_of(static_cast<double>(i + 1)), y_of(s.values[i]));
    }
    out_ += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2.2\" "
        "stroke-linejoin=\"round\"/>\n",
        points, s.colour);
  }

  void legend(const Series& s, double y) {
    const double x = width - right - 150;
    out_ += fmt::format("<path d=\"M{:.1f} {:.1f}h26\" stroke=\"{}\" stroke-width=\"2.2\"/>\n", x,
                        y, s.colour);
    text(x + 34, y + 4, "start", s.name);
  }

  const Chart& chart_;
  std::string out_;
  double x_end_ = 2;
  double x_step_ = 1;
  double y_end_ = 1;
  double y_step_ = 1;
};

}  // namespace

std::string to_svg(const Chart& chart) { return Writer(chart).write(); }

}  // namespace example
