// SPDX-License-Identifier: MIT
// Goroutines whose stacks grow, and garbage, between the returns of functions.
// A line on standard input is a round.
package main

import (
	"bufio"
	"fmt"
	"os"
	"sync"
)

var sink int

//go:noinline
func add(a, b int) int {
	if a > 1000000 {
		return b
	}
	return a*3 + b
}

//go:noinline
func tree(n int) *[8]int {
	var t [8]int
	if n > 0 {
		u := tree(n - 1)
		t[1] = u[0] + 1
	}
	t[0] = n
	sink += t[1] - t[1]
	return &t
}

func round() int {
	var mu sync.Mutex
	var wg sync.WaitGroup
	s := 0
	for i := 0; i < 100; i++ {
		s += add(i, 1)
	}
	for g := 0; g < 8; g++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := tree(300)[1]
			mu.Lock()
			s += r
			mu.Unlock()
		}()
	}
	wg.Wait()
	return s
}

func main() {
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		fmt.Println("sum", round())
	}
}
