# SPDX-License-Identifier: MIT
# libstdc++ under a program of ours, built for both of its string types.
module libstdc++

echo go | input go
flags=(-std=c++17 -O1 -Wno-deprecated-declarations -Wno-cpp -pthread)
build cxx11 cxx.cc g++ "${flags[@]}" -D_GLIBCXX_USE_CXX11_ABI=1 &&
	run -i "$T/in.go" -m END-OF-RUN new-strings "$BIN"
build cxx98 cxx.cc g++ "${flags[@]}" -D_GLIBCXX_USE_CXX11_ABI=0 &&
	run -i "$T/in.go" -m END-OF-RUN old-strings "$BIN"
run -l launched "$BIN"

# The unwinder, under the same exceptions.
module libgcc_s
run -i "$T/in.go" -m END-OF-RUN unwinder "$BUILT/cxx11"
