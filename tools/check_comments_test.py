#!/usr/bin/env python3
"""Tests of check_comments.py, and of how declarations.py reads a header."""

import unittest

import check_comments
import comment_examples
import declarations
from tree_for_test import tree

SCRIPT = "cmake/KilnInstallHeaders.cmake"


def faults(text):
    with tree({SCRIPT: "set(left kiln/a.hpp)\n", "kiln/a.hpp": text}) as root:
        return [fault.removeprefix("kiln/a.hpp:") for fault in check_comments.check(root)[1]]


def names(text):
    return [str(found) for found in declarations.declarations(text)]


class CheckComments(unittest.TestCase):
    def test_asks_for_a_comment_and_an_example_that_runs(self):
        self.assertEqual(faults("namespace kiln {\nint f();\n}\n"), ["2: kiln::f has no comment"])
        self.assertEqual(faults("namespace kiln {\n/// One.\nint f();\n}\n"), ["3: kiln::f has no example that runs"])
        self.assertEqual(faults("namespace kiln {\n/// One.\n///\n///     f(...);\nint f();\n}\n"),
                         ["5: kiln::f has no example that runs"])
        self.assertEqual(faults("namespace kiln {\n/// One.\n///\n///     f();\nint f();\n}\n"), [])

    def test_a_comment_is_for_all_up_to_a_blank_line(self):
        text = "namespace kiln {\n/// Two.\n///\n///     f();\nint f();\nint g(int);\n\nint h();\n}\n"
        self.assertEqual(faults(text), ["8: kiln::h has no comment"])

    def test_an_example_of_the_type_or_the_paragraph_counts_if_it_names_the_function(self):
        text = ("namespace kiln {\n/// A type.\n///\n///     A a;\n///     a.f() + a[0];\nstruct A {\n  /// One.\n  int f();\n\n"
                "  /// Two.\n  int operator[](int);\n\n  /// Three.\n  int g();\n};\n}\n")
        self.assertEqual(faults(text), ["14: kiln::A::g has no example that runs"])
        text = "namespace kiln {\n/// One.\n///\n///     g(f(1));\nint f(int);\n/// Two.\nint g(int);\n/// Three.\nint h(int);\n}\n"
        self.assertEqual(faults(text), ["9: kiln::h has no example that runs"])

    def test_the_comment_of_a_type_is_not_that_of_its_first_member(self):
        self.assertEqual(faults("namespace kiln {\n/// A type.\nstruct A {\n  int f();\n};\n}\n"), ["4: kiln::A::f has no comment"])

    def test_private_deleted_and_detail_functions_need_none(self):
        text = ("namespace kiln {\nnamespace detail {\nint f();\n}\n/// A type.\nclass A {\n  int f();\n\n public:\n  A(const A&) = delete;\n"
                "  ~A();\n\n private:\n  int g();\n};\n}\n")
        self.assertEqual(faults(text), [])

    def test_looks_into_the_headers_that_are_included(self):
        with tree({SCRIPT: "set(left kiln/a.hpp)\n", "kiln/a.hpp": '#include "kiln/b.hpp"\n', "kiln/b.hpp": "int f();\n"}) as root:
            self.assertEqual(check_comments.check(root)[1], ["kiln/b.hpp:1: f has no comment"])

    def test_what_is_exempt_exists(self):
        headers = declarations.public_headers(comment_examples.ROOT)
        declared = [found for header in headers for found in
                    declarations.declarations((comment_examples.ROOT / header).read_text())]
        known = {*headers, *map(str, declared), *("::".join(found.scope) for found in declared)}
        self.assertEqual({*check_comments.WITHOUT_EXAMPLE, *check_comments.WITH_EXAMPLE} - known, set())


class Declarations(unittest.TestCase):
    def test_reads_functions_of_every_form(self):
        text = """
template <class T, std::size_t N = (1 > 0)>
  requires(sizeof(T) > 1)
[[nodiscard]] constexpr std::vector<T> f(const std::array<T, N>& x = {}, int y = g(1)) noexcept;
inline bool operator==(const A& a, const B& b) { return a < b || !(b > a); }
decltype(auto) h(int);
const char* text = "int no();";  // int no();
std::function<void(int)> variable = [](int) { return; };
void (*pointer)(int) = nullptr;
"""
        self.assertEqual(names(text), ["f", "operator==", "h"])

    def test_reads_types_and_what_is_public_in_them(self):
        text = """
namespace a::b {
class C : public D<int> {
 public:
  C(int x) : x_{x}, y_(x) {}
  explicit operator bool() const { return true; }
  int& operator()(int i) { return i < 2 ? x_ : y_; }
  enum class Kind : int { one, two };
  friend bool operator<(C, C) { return false; }

 private:
  int x_{};
  int y_ = 0;
  int hidden();
};
template <class T>
int C::member() { return 1; }
}
"""
        self.assertEqual(names(text), ["a::b::C", "a::b::C::C", "a::b::C::operator bool", "a::b::C::operator()"])

    def test_a_definition_after_its_declaration_is_the_same_function(self):
        text = "template <class F>\nint f(F x, int y = 1);\ntemplate <class F>\nint f(F x, int y) { return 1; }\nint f(char x) { return 2; }\n"
        self.assertEqual([found.line for found in declarations.declarations(text)], [1, 5])


class CommentExamples(unittest.TestCase):
    def test_checks_values_texts_and_errors(self):
        lines = ["const int a = 1;", "a + 1;   // [2]", 'name(a);   // "one"', "f(", "  a);   // throws Error"]
        self.assertEqual(comment_examples.statements(lines).split("\n"),
                         ["const int a = 1;", 'expect_values((a + 1), "[2]");', 'expect_text((name(a)), "one");',
                          "EXPECT_THROW((void)(f(", "  a)), Error);"])

    def test_puts_structs_and_functions_before_the_test(self):
        lines = ["struct A {", "  int f() { return 1; }", "};", "int g(const A& a) { return a.f(); }", "g(A{});   // [1]"]
        self.assertEqual(comment_examples.definitions(lines), (lines[:4], lines[4:]))


if __name__ == "__main__":
    unittest.main()
