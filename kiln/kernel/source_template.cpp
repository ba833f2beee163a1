#include "kiln/kernel/source_template.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "kiln/support/error.hpp"

namespace kiln {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front())) != 0) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back())) != 0) s.remove_suffix(1);
  return s;
}

bool is_identifier(std::string_view s) {
  const auto word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  return !s.empty() && std::isdigit(static_cast<unsigned char>(s.front())) == 0 &&
         std::ranges::all_of(s, word);
}

int count_lines(std::string_view s) { return static_cast<int>(std::ranges::count(s, '\n')); }

/// Reads an unsigned number at `at` and moves past it. Gives 0 if there is none.
int take_number(std::string_view s, std::size_t& at) {
  int value = 0;
  const auto [end, error] = std::from_chars(s.data() + at, s.data() + s.size(), value);
  if (error != std::errc()) return 0;
  at = static_cast<std::size_t>(end - s.data());
  return value;
}

/// Where a row of a compiler's message has the file's name, and what follows the line number.
struct Position {
  std::size_t file;
  int line;
  std::size_t rest;
  bool framed;
};

/// Finds it in "... wgsl:12:5 ..." and in "  ┌─ any name:12:5".
std::optional<Position> position_in(std::string_view row) {
  constexpr std::string_view frame = "┌─ ";
  const std::size_t framed = row.find(frame);
  if (framed != std::string_view::npos && row.find_first_not_of(' ') == framed) {
    const std::size_t column = row.find_last_of(':');
    const std::size_t before = column == 0 ? column : row.find_last_of(':', column - 1);
    if (column == std::string_view::npos || before == std::string_view::npos) return std::nullopt;
    std::size_t at = before + 1;
    const int line = take_number(row, at);
    if (at != column || line == 0) return std::nullopt;
    return Position{framed + frame.size(), line, at, true};
  }
  const std::size_t mark = row.find("wgsl:");
  if (mark == std::string_view::npos || (mark > 0 && row[mark - 1] != ' ')) return std::nullopt;
  std::size_t at = mark + 5;
  const int line = take_number(row, at);
  return Position{mark, line, at, false};
}

}  // namespace

SourceTemplate::SourceTemplate(const SourceText& source) : name_(source.name), text_(source.text) {
  const std::string_view all = text_;
  std::size_t begin = 0;
  int line = 1;
  for (;;) {
    const std::size_t open = all.find("{{", begin);
    const std::string_view literal = all.substr(begin, open - begin);
    line += count_lines(literal);
    if (open == std::string_view::npos) {
      pieces_.push_back({std::string(literal), {}, line});
      return;
    }
    const std::size_t line_end = std::min(all.find('\n', open), all.size());
    const std::size_t close = all.substr(0, line_end).find("}}", open);
    if (close == std::string_view::npos) {
      throw KernelError(fmt::format("{}:{}: placeholder '{}' is not closed on its line", name_,
                                    line, all.substr(open, line_end - open)));
    }
    const std::string_view variable = trim(all.substr(open + 2, close - open - 2));
    if (!is_identifier(variable)) {
      throw KernelError(fmt::format("{}:{}: malformed placeholder '{}'; write {{{{ name }}}}",
                                    name_, line, all.substr(open, close + 2 - open)));
    }
    pieces_.push_back({std::string(literal), std::string(variable), line});
    begin = close + 2;
  }
}

bool SourceTemplate::uses(std::string_view variable) const {
  const auto has_it = [&](const Piece& piece) { return piece.variable == variable; };
  return !variable.empty() && std::ranges::any_of(pieces_, has_it);
}

RenderedSource SourceTemplate::render(const Variables& user, const Variables& library) const {
  for (const auto& [variable, value] : user) {
    if (!uses(variable))
      throw KernelError(
          fmt::format("{}: variable '{}' is set, but the source never uses it", name_, variable));
  }
  RenderedSource out{.name = name_, .text = {}, .lines = {1}};
  int line = 1;
  const auto append = [&](std::string_view text, bool template_text) {
    for (const char c : text) {
      out.text += c;
      if (c != '\n') continue;
      if (template_text) ++line;
      out.lines.push_back(line);
    }
  };
  for (const Piece& piece : pieces_) {
    append(piece.literal, true);
    if (piece.variable.empty()) continue;
    auto at = user.find(piece.variable);
    if (at == user.end()) {
      at = library.find(piece.variable);
      if (at == library.end()) {
        throw KernelError(
            fmt::format("{}:{}: variable '{}' is not set", name_, piece.line, piece.variable));
      }
    }
    append(at->second, false);
  }
  return out;
}

std::string RenderedSource::locate(std::string_view message) const {
  // wgpu-native writes a position as "wgsl:12:5" if it cannot parse the text. Otherwise it writes
  // "┌─ LABEL:12:5" above an excerpt whose margin is "12 │". All count lines of the rendered text.
  const auto has_line = [&](int rendered) {
    return rendered > 0 && static_cast<std::size_t>(rendered) <= lines.size();
  };
  const auto template_line = [&](int rendered) {
    return lines[static_cast<std::size_t>(rendered) - 1];
  };
  std::string out;
  std::size_t begin = 0;
  while (begin < message.size()) {
    const std::size_t end = std::min(message.find('\n', begin), message.size());
    const std::string_view row = message.substr(begin, end - begin);
    begin = end + 1;
    const auto position = position_in(row);
    if (position && (has_line(position->line) || position->framed)) {
      const std::string place =
          has_line(position->line)
              ? fmt::format("{}:{}", name, template_line(position->line))
              : fmt::format("what is generated behind {}, line {}", name, position->line);
      out +=
          fmt::format("{}{}{}\n", row.substr(0, position->file), place, row.substr(position->rest));
      continue;
    }
    std::size_t at = row.find_first_not_of(' ');
    if (at != std::string_view::npos && std::isdigit(static_cast<unsigned char>(row[at])) != 0) {
      const int rendered = take_number(row, at);
      if (has_line(rendered) && row.substr(at).starts_with(" │")) {
        // The margin keeps its width, so that the marks in the rows below stay in place.
        out += fmt::format("{:>{}}{}\n", template_line(rendered), at, row.substr(at));
        continue;
      }
    }
    out += row;
    out += '\n';
  }
  if (!out.empty()) out.pop_back();
  return out;
}

}  // namespace kiln
