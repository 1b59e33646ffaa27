// A hundred goroutines read a file's parts; the runtime preempts them by signals (SIGURG).
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"sync"
)

const parts = 100

func main() {
	file, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	status, err := file.Stat()
	if err != nil {
		panic(err)
	}
	size := status.Size()
	var sums [parts][sha256.Size]byte
	var group sync.WaitGroup
	for part := int64(0); part < parts; part++ {
		group.Add(1)
		go func(part int64) {
			defer group.Done()
			data := make([]byte, size*(part+1)/parts-size*part/parts)
			if _, err := file.ReadAt(data, size*part/parts); err != nil {
				panic(err)
			}
			sums[part] = sha256.Sum256(data)
		}(part)
	}
	group.Wait()
	all := sha256.New()
	for _, sum := range sums {
		all.Write(sum[:])
	}
	fmt.Printf("%x\n", all.Sum(nil))
}
