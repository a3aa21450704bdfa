// Command driver carries out the tests' commands with franz-go, one at a time. It reads a command
// and writes an answer, each as a JSON object in one line. See tests/clients/__init__.py.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const within = 30 * time.Second

type record struct {
	Partition int32             `json:"partition"`
	Offset    int64             `json:"offset"`
	Timestamp *int64            `json:"timestamp"`
	Key       *string           `json:"key"`
	Value     string            `json:"value"`
	Headers   map[string]string `json:"headers"`
}

type command struct {
	Do         string   `json:"do"`
	Topic      string   `json:"topic"`
	Partition  int32    `json:"partition"`
	Partitions int32    `json:"partitions"`
	Codec      string   `json:"codec"`
	Acks       int      `json:"acks"`
	Idempotent bool     `json:"idempotent"`
	Records    []record `json:"records"`
	Offset     int64    `json:"offset"`
	Count      int      `json:"count"`
	Timestamp  int64    `json:"timestamp"`
	Group      string   `json:"group"`
	WaitMs     int64    `json:"wait_ms"`
}

type answer map[string]any

type driver struct {
	client   *kgo.Client
	admin    *kadm.Client
	member   *kgo.Client
	mutex    sync.Mutex
	assigned []int32
}

func main() {
	client, err := newClient()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	d := &driver{client: client, admin: kadm.NewClient(client)}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var given command
		err := json.Unmarshal(lines.Bytes(), &given)
		found := answer{}
		if err == nil {
			found, err = d.run(given)
		}
		said := answer{"ok": found}
		if err != nil {
			said = answer{"error": err.Error()}
		} else if found == nil {
			said = answer{"ok": answer{}}
		}
		line, _ := json.Marshal(said)
		fmt.Println(string(line))
	}
}

// newClient makes a client of the broker, with TLS if the driver was given files, and with a login
// if it was given a mechanism, a user and a password.
func newClient(options ...kgo.Opt) (*kgo.Client, error) {
	options = append(options, kgo.SeedBrokers(os.Args[1]))
	if len(os.Args) > 2 {
		pem, err := os.ReadFile(os.Args[2])
		if err != nil {
			return nil, err
		}
		sealed := &tls.Config{RootCAs: x509.NewCertPool()}
		sealed.RootCAs.AppendCertsFromPEM(pem)
		if len(os.Args) == 6 {
			options = append(options, kgo.SASL(login(os.Args[3], os.Args[4], os.Args[5])))
		} else if len(os.Args) > 4 {
			pair, err := tls.LoadX509KeyPair(os.Args[3], os.Args[4])
			if err != nil {
				return nil, err
			}
			sealed.Certificates = []tls.Certificate{pair}
		}
		options = append(options, kgo.DialTLSConfig(sealed))
	}
	return kgo.NewClient(options...)
}

func login(mechanism, user, password string) sasl.Mechanism {
	proof := scram.Auth{User: user, Pass: password}
	switch mechanism {
	case "SCRAM-SHA-256":
		return proof.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return proof.AsSha512Mechanism()
	}
	return plain.Auth{User: user, Pass: password}.AsMechanism()
}

func (d *driver) run(c command) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	switch c.Do {
	case "version":
		return version()
	case "create":
		_, err := d.admin.CreateTopic(ctx, c.Partitions, -1, nil, c.Topic)
		return nil, err
	case "describe":
		return d.describe(ctx, c)
	case "topics":
		found, err := d.admin.ListTopics(ctx)
		return answer{"topics": found.Names()}, err
	case "produce":
		return nil, d.produce(ctx, c)
	case "consume":
		return d.consume(ctx, c)
	case "offsets":
		return d.offsets(ctx, c)
	case "offset_at":
		return d.offsetAt(ctx, c)
	case "delete":
		_, err := d.admin.DeleteTopic(ctx, c.Topic)
		return nil, err
	case "join":
		return nil, d.join(c)
	case "poll":
		return d.poll(c)
	case "commit":
		return nil, d.member.CommitUncommittedOffsets(ctx)
	case "leave":
		d.member.Close()
		return nil, nil
	}
	return nil, fmt.Errorf("no such command: %s", c.Do)
}

func version() (answer, error) {
	built, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, fmt.Errorf("built without modules")
	}
	for _, each := range built.Deps {
		if each.Path == "github.com/twmb/franz-go" {
			return answer{"version": each.Version}, nil
		}
	}
	return nil, fmt.Errorf("franz-go is not built in")
}

func (d *driver) describe(ctx context.Context, c command) (answer, error) {
	found, err := d.admin.ListTopics(ctx, c.Topic)
	if err != nil {
		return nil, err
	}
	partitions := found[c.Topic].Partitions.Numbers()
	slices.Sort(partitions)
	return answer{"partitions": partitions}, found[c.Topic].Err
}

func codec(name string) kgo.CompressionCodec {
	switch name {
	case "gzip":
		return kgo.GzipCompression()
	case "snappy":
		return kgo.SnappyCompression()
	case "lz4":
		return kgo.Lz4Compression()
	case "zstd":
		return kgo.ZstdCompression()
	}
	return kgo.NoCompression()
}

func (d *driver) produce(ctx context.Context, c command) error {
	acks := map[int]kgo.Acks{-1: kgo.AllISRAcks(), 0: kgo.NoAck(), 1: kgo.LeaderAck()}[c.Acks]
	options := []kgo.Opt{
		kgo.ProducerBatchCompression(codec(c.Codec)),
		kgo.RequiredAcks(acks),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}
	if !c.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := newClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	var sent []*kgo.Record
	for _, each := range c.Records {
		made := &kgo.Record{Topic: c.Topic, Partition: each.Partition, Value: []byte(each.Value)}
		if each.Key != nil {
			made.Key = []byte(*each.Key)
		}
		if each.Timestamp != nil {
			made.Timestamp = time.UnixMilli(*each.Timestamp)
		}
		for name, value := range each.Headers {
			made.Headers = append(made.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		}
		sent = append(sent, made)
	}
	return client.ProduceSync(ctx, sent...).FirstErr()
}

func (d *driver) consume(ctx context.Context, c command) (answer, error) {
	from := map[int32]kgo.Offset{c.Partition: kgo.NewOffset().At(c.Offset)}
	client, err := newClient(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.Topic: from}),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	found := []record{}
	for len(found) < c.Count {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("%d of %d: %w", len(found), c.Count, err)
		}
		found = append(found, records(fetches)...)
	}
	return answer{"records": found}, nil
}

func (d *driver) offsets(ctx context.Context, c command) (answer, error) {
	first, err := d.admin.ListStartOffsets(ctx, c.Topic)
	if err != nil {
		return nil, err
	}
	end, err := d.admin.ListEndOffsets(ctx, c.Topic)
	if err != nil {
		return nil, err
	}
	firstFound, _ := first.Lookup(c.Topic, c.Partition)
	endFound, _ := end.Lookup(c.Topic, c.Partition)
	return answer{"first": firstFound.Offset, "end": endFound.Offset}, endFound.Err
}

// If no record is at or after the timestamp, ListOffsetsAfterMilli returns the log end, without a
// timestamp.
func (d *driver) offsetAt(ctx context.Context, c command) (answer, error) {
	listed, err := d.admin.ListOffsetsAfterMilli(ctx, c.Timestamp, c.Topic)
	if err != nil {
		return nil, err
	}
	found, _ := listed.Lookup(c.Topic, c.Partition)
	if found.Timestamp == -1 {
		return answer{"offset": -1}, found.Err
	}
	return answer{"offset": found.Offset}, found.Err
}

func (d *driver) join(c command) error {
	assign := func(change func(had, given []int32) []int32) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			d.mutex.Lock()
			defer d.mutex.Unlock()
			d.assigned = change(d.assigned, partitions[c.Topic])
		}
	}
	gained := func(had, given []int32) []int32 { return append(had, given...) }
	lost := func(had, given []int32) []int32 {
		return slices.DeleteFunc(had, func(each int32) bool { return slices.Contains(given, each) })
	}
	member, err := newClient(
		kgo.ConsumerGroup(c.Group),
		kgo.ConsumeTopics(c.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.OnPartitionsAssigned(assign(gained)),
		kgo.OnPartitionsRevoked(assign(lost)),
		kgo.OnPartitionsLost(assign(lost)),
	)
	d.member = member
	return err
}

func (d *driver) poll(c command) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.WaitMs)*time.Millisecond)
	defer cancel()
	fetches := d.member.PollFetches(ctx)
	for _, each := range fetches.Errors() {
		var away *kgo.ErrGroupSession // the client goes on by itself, as its documentation says
		late := strings.Contains(each.Err.Error(), context.DeadlineExceeded.Error())
		if !late && !errors.As(each.Err, &away) {
			return nil, each.Err
		}
	}
	d.mutex.Lock()
	assigned := append([]int32{}, d.assigned...)
	d.mutex.Unlock()
	slices.Sort(assigned)
	return answer{"records": records(fetches), "assigned": assigned}, nil
}

func records(fetches kgo.Fetches) []record {
	found := []record{}
	fetches.EachRecord(func(each *kgo.Record) {
		at := each.Timestamp.UnixMilli()
		made := record{
			Partition: each.Partition, Offset: each.Offset, Timestamp: &at,
			Value: string(each.Value), Headers: map[string]string{},
		}
		if each.Key != nil {
			key := string(each.Key)
			made.Key = &key
		}
		for _, header := range each.Headers {
			made.Headers[header.Key] = string(header.Value)
		}
		found = append(found, made)
	})
	return found
}
