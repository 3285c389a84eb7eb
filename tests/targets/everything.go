// SPDX-License-Identifier: MIT
// What Go's runtime does in odd ways, in rounds, one a line on stdin, which says how
// much of it: threads that
// come and end, children, signals, nil pointers and overflows that are recovered,
// goroutines that are preempted in the middle of a loop, and hundreds whose small
// stacks lie side by side and are used up to their last bytes.  Each round says how
// many results were wrong.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

//go:noinline
func leaf(a, b int) int { return a*3 + b }

//go:noinline
func mid(a, b int) int { return leaf(a, b) + leaf(b, a) }

//go:noinline
func deep(n, x int) int {
	if n == 0 {
		return mid(x, 1)
	}
	return deep(n-1, x+1) + mid(n, x)
}

func want(n, x int) int {
	s := 0
	for ; n > 0; n-- {
		s += 4*n + 4*x
		x++
	}
	return s + 4*x + 4
}

//go:noinline
func nilled(p *int) (ok bool) {
	defer func() { ok = recover() != nil }()
	return *p == 0
}

//go:noinline
func divided(a, b int) (ok bool) {
	defer func() { ok = recover() != nil }()
	return a/b == 0
}

//go:noinline
func spin(stop *int32) (s, n int) {
	for atomic.LoadInt32(stop) == 0 {
		s += n & 1
		n++
	}
	return s, n
}

func main() {
	var wrong, signals int64
	check := func(ok bool) {
		if !ok {
			atomic.AddInt64(&wrong, 1)
		}
	}
	usr := make(chan os.Signal, 64)
	signal.Notify(usr, syscall.SIGUSR1, syscall.SIGCHLD)
	go func() {
		for range usr {
			atomic.AddInt64(&signals, 1)
		}
	}()
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for in.Scan() {
		var much int
		var wg sync.WaitGroup
		fmt.Sscan(in.Text(), &much)
		run := func(n int, f func(i int)) {
			for i := 0; i < n; i++ {
				wg.Add(1)
				go func(i int) {
					defer wg.Done()
					f(i)
				}(i)
			}
		}
		run(5*much, func(i int) {
			var own [16]int
			for k := range own {
				own[k] = i*16 + k
			}
			for n := 0; n < 60; n += 60 / much {
				check(deep(n, i) == want(n, i))
			}
			for k := range own {
				check(own[k] == i*16+k)
			}
		})
		// A thread that is locked ends with its goroutine.
		run(8, func(i int) {
			runtime.LockOSThread()
			check(nilled(nil) && divided(i, 0))
			time.Sleep(time.Millisecond)
		})
		run(2, func(i int) { check(exec.Command("/bin/true").Run() == nil) })
		// With a probe on each of its instructions a loop is not preempted.
		var stop int32
		loops := 4
		if much < 10 {
			loops = 0
		}
		run(loops, func(i int) {
			s, n := spin(&stop)
			check(s == n/2)
		})
		run(4, func(i int) {
			for k := 0; k < much; k++ {
				check(syscall.Kill(os.Getpid(), syscall.SIGUSR1) == nil)
				m := map[string]int{}
				for j := 0; j < 200; j++ {
					m[fmt.Sprint(j)] = j
				}
				check(len(m) == 200 && m["77"] == 77)
			}
		})
		time.Sleep(30 * time.Millisecond)
		runtime.GC()
		atomic.StoreInt32(&stop, 1)
		wg.Wait()
		fmt.Println("wrong", atomic.LoadInt64(&wrong), "signals", atomic.LoadInt64(&signals) > 0)
	}
}
