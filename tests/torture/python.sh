# SPDX-License-Identifier: MIT
# python3.11: the interpreter under tests of its own, those that take little, and under
# a program that calls much of what is built in.
module python3.11

echo go | input go
export PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
py=(/usr/bin/python3.11 -X utf8 "$HERE/python.py")
tests()
{
	run -i "$T/in.go" -m END-OF-RUN -t 1200 "$1" "${py[@]}" "${@:2}"
}
tests language test_scope test_super test_with test_yield_from test_keywordonlyarg test_genexps \
	test_metaclass test_property test_named_expressions
tests values test_bool test_index test_format test_operator test_compare test_richcmp test_binop \
	test_structseq test_dictviews
[ -n "$QUICK" ] && return
run -i "$T/in.go" -m END-OF-RUN -t 3600 tour /usr/bin/python3.11 -X utf8 "$HERE/python-tour.py"
tests errors test_except_star test_exception_group test_raise test_errno test_typechecks
tests calls test_call test_extcall test_positional_only_arg test_unpack_ex test_decorators test_class
tests files test_fileio test_univnewlines
tests more test_complex test_enumerate test_iter test_unary test_iterlen test_pprint test_syntax
