// SPDX-License-Identifier: MIT
// A line with a number on a Unix socket is answered by a digest.  Each answer also
// goes through recovered nil pointers, stacks that grow, goroutines, garbage,
// and, now and then, threads that end and child processes.
package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

type box struct {
	value int
	next  *box
}

func sum(b *box, n int) (s int) {
	for i := 0; i < n; i++ {
		s += b.value
		b = b.next
	}
	return s
}

func nils(n int) (ok bool) {
	var b *box
	for i := 0; i < n; i++ {
		b = &box{i, b}
	}
	if sum(b, n) != n*(n-1)/2 {
		return false
	}
	defer func() { ok = recover() != nil }()
	sum(b, n+1)
	return false
}

func deep(n int) int {
	if n == 0 {
		return 0
	}
	return deep(n-1) + n
}

func answer(n int) string {
	text := strings.Repeat(fmt.Sprintf("ukprobes %d\n", n), n%50+1)
	sums := make(chan int)
	go func() { sums <- deep(n % 300) }()
	garbage := map[int][]byte{}
	for i := 0; i < 20; i++ {
		garbage[i] = make([]byte, 1000+i)
	}
	ok := nils(n%100+1) && len(garbage[19]) == 1019
	k := n % 300
	ok = ok && <-sums == k*(k+1)/2
	if n%199 == 0 {
		done := make(chan bool)
		go func() {
			runtime.LockOSThread() // and ends with it
			done <- nils(3)
		}()
		ok = <-done && ok
	}
	if n%499 == 0 {
		ok = exec.Command("/bin/true").Run() == nil && ok
	}
	if !ok {
		return "wrong\n"
	}
	return fmt.Sprintf("%x\n", sha256.Sum256([]byte(text)))
}

func serve(c net.Conn) {
	in := bufio.NewScanner(c)
	for in.Scan() {
		n := 0
		fmt.Sscan(in.Text(), &n)
		if _, err := c.Write([]byte(answer(n))); err != nil {
			return
		}
	}
}

func main() {
	l, err := net.Listen("unix", os.Args[1])
	if err != nil {
		panic(err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		go serve(c)
	}
}
