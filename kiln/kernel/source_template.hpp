#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/kernel/source_text.hpp"

namespace kiln {

/// A template with every placeholder replaced, and a map from its lines to the template's.
struct RenderedSource {
  std::string name;  ///< of the template
  std::string text;
  std::vector<int>
      lines;  ///< for each line of `text`, the template's line it came from, both counted from 1

  /// A compiler's message with every position in this text turned into the template's
  /// ("name:line:column").
  [[nodiscard]] std::string locate(std::string_view message) const;
};

/// Kernel text with `{{ name }}` placeholders. "{{" always begins one; names are letters, digits
/// and "_".
///
///     const SourceTemplate t({"scale.wgsl", "const by = {{ factor }};"});
///     t.render({{"factor", "2.0"}}, {}).text;   // "const by = 2.0;"
class SourceTemplate {
 public:
  using Variables = std::map<std::string, std::string, std::less<>>;

  /// Finds the placeholders. Throws KernelError with name and line for a malformed one.
  explicit SourceTemplate(const SourceText& source);

  /// Puts values in place of the placeholders. Throws KernelError for a placeholder in neither map,
  /// and for a name in `user` that the text never uses. `library` values need not be used.
  [[nodiscard]] RenderedSource render(const Variables& user, const Variables& library) const;

  /// The text as it was given.
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Whether the text has the placeholder.
  [[nodiscard]] bool uses(std::string_view variable) const;

 private:
  struct Piece {
    std::string literal;   ///< text up to the placeholder
    std::string variable;  ///< empty for the last piece
    int line = 1;          ///< of the placeholder
  };

  std::string name_;
  std::string text_;
  std::vector<Piece> pieces_;
};

}  // namespace kiln
