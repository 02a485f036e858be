// SPDX-License-Identifier: Apache-2.0

// A web server in Go.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		sum := 0
		for i := 0; i < 500000; i++ {
			sum += i % 7
		}
		w.Header()["Date"] = nil
		if sum > 0 {
			w.Write([]byte("done\n"))
		}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	panic(http.Serve(listener, nil))
}
