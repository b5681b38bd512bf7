// Times how long a Go module takes to discover the skills of a folder.
//
// Usage: peers eino|trpc FOLDER COUNT ROUNDS. Prints the median of wall seconds.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strconv"
	"time"

	eino "github.com/cloudwego/eino/adk/middlewares/skill"
	trpc "trpc.group/trpc-go/trpc-agent-go/skill"
)

func discover(peer, folder string) (int, error) {
	switch peer {
	case "eino":
		backend, err := eino.NewLocalBackend(&eino.LocalBackendConfig{BaseDir: folder})
		if err != nil {
			return 0, err
		}
		skills, err := backend.List(context.Background())
		return len(skills), err
	case "trpc":
		repository, err := trpc.NewFSRepository(folder)
		if err != nil {
			return 0, err
		}
		return len(repository.Summaries()), nil
	}
	return 0, fmt.Errorf("unknown peer %s", peer)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func main() {
	if len(os.Args) != 5 {
		fail(fmt.Errorf("usage: peers eino|trpc FOLDER COUNT ROUNDS"))
	}
	peer, folder := os.Args[1], os.Args[2]
	count, err := strconv.Atoi(os.Args[3])
	if err != nil {
		fail(err)
	}
	rounds, err := strconv.Atoi(os.Args[4])
	if err != nil || rounds < 1 {
		fail(fmt.Errorf("rounds must be a number: %v", err))
	}
	samples := make([]float64, 0, rounds)
	for range rounds {
		start := time.Now()
		found, err := discover(peer, folder)
		samples = append(samples, time.Since(start).Seconds())
		if err != nil {
			fail(err)
		}
		if found != count {
			fail(fmt.Errorf("%s found %d of %d skills", peer, found, count))
		}
	}
	sort.Float64s(samples)
	fmt.Println(samples[rounds/2])
}
