// SPDX-License-Identifier: MIT
// A Go program that counts the calls of its own functions: goroutines whose stacks
// grow, panics that are recovered some frames above, deferred calls, methods by
// interfaces, closures, maps, channels, and packages that sort, format, match and
// compress, with a collector that never rests.  A line on stdin is a round: what came
// of it ("result"), and how often each function was called since the start ("count").
package main

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"regexp"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	cGrow = iota
	cThrow
	cDeep
	cRecover
	cDefer
	cArea
	cSide
	cFib
	cWork
	cText
	cPack
	cMatch
	cProduce
	cConsume
	cRecovered
	cDeferred
	cProducer
	cRound
	cWorker
	nCounts
)

var names = [nCounts]string{"main.grow", "main.throw", "main.deep", "main.recovers", "main.defers",
	"main.(*square).area", "main.(*circle).area", "main.fib", "main.work", "main.text", "main.pack",
	"main.match", "main.produce", "main.consume", "main.recovers.func1", "main.defers.func1", "main.work.func1",
	"main.round", "main.round.func1"}

var counts [nCounts]int64

func count(i int) { atomic.AddInt64(&counts[i], 1) }

//go:noinline
func grow(n int) *[16]int {
	count(cGrow)
	var t [16]int
	if n > 0 {
		u := grow(n - 1)
		t[1] = u[0] + 1
	}
	t[0] = n
	return &t
}

var errOdd = errors.New("odd")

//go:noinline
func throw(n int) int {
	count(cThrow)
	if n%2 == 1 {
		panic(errOdd)
	}
	if n%6 == 0 {
		var none []int
		return none[n]
	}
	return n
}

//go:noinline
func deep(n, x int) int {
	count(cDeep)
	if n == 0 {
		return throw(x)
	}
	return deep(n-1, x) + 1
}

//go:noinline
func recovers(x int) (r int) {
	count(cRecover)
	defer func() {
		count(cRecovered)
		if e := recover(); e == errOdd {
			r = -1
		} else if e != nil {
			r = -2
		}
	}()
	return deep(x%5, x)
}

//go:noinline
func defers(x int) (r int) {
	count(cDefer)
	for i := 0; i < 3; i++ {
		defer func() { count(cDeferred); r += recovers(x + i) }()
	}
	return x
}

type shape interface{ area() int }
type square struct{ a int }
type circle struct{ r int }

//go:noinline
func (s *square) area() int { count(cArea); return s.a * s.a }

//go:noinline
func (c *circle) area() int { count(cSide); return 3 * c.r * c.r }

//go:noinline
func fib(n int) int {
	count(cFib)
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

//go:noinline
func text(n int) string {
	count(cText)
	var b strings.Builder
	words := map[string]int{}
	for i := 0; i < n; i++ {
		w := fmt.Sprintf("w%03d", i*7%n)
		words[w] += i
		b.WriteString(w)
		b.WriteByte(' ')
	}
	keys := make([]string, 0, len(words))
	for k := range words {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	j, _ := json.Marshal(words)
	return b.String() + strings.Join(keys, ",") + string(j)
}

//go:noinline
func pack(s string) int {
	count(cPack)
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, 6)
	io.WriteString(w, s)
	w.Close()
	back, _ := io.ReadAll(flate.NewReader(&b))
	if string(back) != s {
		return -1
	}
	return int(crc32.ChecksumIEEE(back))
}

var pattern = regexp.MustCompile(`w(\d)(\d+)`)

//go:noinline
func match(s string) int {
	count(cMatch)
	n := 0
	for _, m := range pattern.FindAllStringSubmatch(s, -1) {
		n += len(m[1]) + len(m[2])
	}
	return n
}

//go:noinline
func produce(c chan<- int, n int) {
	count(cProduce)
	for i := 0; i < n; i++ {
		c <- i
	}
	close(c)
}

//go:noinline
func consume(c <-chan int) (s int) {
	count(cConsume)
	for i := range c {
		s += i
	}
	return s
}

//go:noinline
func work(g int) int {
	count(cWork)
	s := grow(60 + g)[1]
	for i := 0; i < 12; i++ {
		s += recovers(i+g)*3 + defers(i)
	}
	for _, sh := range []shape{&square{g}, &circle{g}, &square{3}} {
		s += sh.area()
	}
	c := make(chan int, 1)
	go func() { count(cProducer); produce(c, 10) }()
	return s + consume(c) + fib(9)
}

//go:noinline
func round() int {
	count(cRound)
	var mu sync.Mutex
	var wg sync.WaitGroup
	s := 0
	for g := 0; g < 8; g++ {
		g := g
		wg.Add(1)
		go func() {
			count(cWorker)
			r := work(g)
			mu.Lock()
			s += r
			mu.Unlock()
			wg.Done()
		}()
	}
	wg.Wait()
	t := text(40)
	runtime.GC()
	return s + pack(t) + match(t)
}

func main() {
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		fmt.Println("result", round())
		for i := range counts {
			fmt.Println("count", names[i], atomic.LoadInt64(&counts[i]))
		}
		fmt.Println("done")
	}
}
