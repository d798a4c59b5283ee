// The counterpart of child.go for libmosquitto: see runChild there for the protocol
// on its standard input and output. One thread, with poll(2) over the
// sockets, which costs less than the library's own thread and its locks.
//
//	gcc -O2 -o libmosquitto libmosquitto.c -lmosquitto
#include <mosquitto.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { burst_size = 1000, keep_alive = 300, max_clients = 100000 };
static const char topic[] = "peers/t";

static char host[256], ca[4096], work[32];
static int port, qos, payload, window = 1;
static char *message;
static struct mosquitto *publisher, *subscriber, *idle[max_clients];
static int idle_count;
static long received, acked, connected, subscribed;
static long long burst_cpu;

static void fail(const char *format, ...) {
	va_list args;
	va_start(args, format);
	printf("error: ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
	exit(1);
}

static void must(int rc, const char *what) {
	if (rc != MOSQ_ERR_SUCCESS) fail("%s: %s", what, mosquitto_strerror(rc));
}

static void on_connect(struct mosquitto *m, void *u, int rc) {
	if (rc != 0) fail("CONNACK %d", rc);
	connected++;
}
static void on_publish(struct mosquitto *m, void *u, int mid) { acked++; }
static void on_subscribe(struct mosquitto *m, void *u, int mid, int n, const int *granted) { subscribed++; }
static void on_message(struct mosquitto *m, void *u, const struct mosquitto_message *msg) {
	if (msg->payloadlen == payload) received++;
}

// turn waits for the sockets of the clients and lets the library work on them.
static void turn(struct mosquitto **clients, int n) {
	struct pollfd fds[2];
	for (int i = 0; i < n; i++) {
		fds[i].fd = mosquitto_socket(clients[i]);
		fds[i].events = POLLIN | (mosquitto_want_write(clients[i]) ? POLLOUT : 0);
	}
	if (poll(fds, n, 60000) <= 0) fail("nothing has come within 60 s");
	for (int i = 0; i < n; i++) {
		if (fds[i].revents & POLLOUT) must(mosquitto_loop_write(clients[i], 1), "write");
		if (fds[i].revents & ~POLLOUT) must(mosquitto_loop_read(clients[i], 1), "read");
	}
}

static struct mosquitto *connect_one(const char *id) {
	struct mosquitto *m = mosquitto_new(id, true, NULL);
	if (!m) fail("mosquitto_new");
	mosquitto_int_option(m, MOSQ_OPT_TCP_NODELAY, 1);
	mosquitto_max_inflight_messages_set(m, window);
	mosquitto_connect_callback_set(m, on_connect);
	mosquitto_publish_callback_set(m, on_publish);
	mosquitto_subscribe_callback_set(m, on_subscribe);
	mosquitto_message_callback_set(m, on_message);
	if (ca[0]) must(mosquitto_tls_set(m, ca, NULL, NULL, NULL, NULL), "TLS");
	must(mosquitto_connect(m, host, port, keep_alive), "connect");
	for (long want = connected + 1; connected < want;) turn(&m, 1);
	return m;
}

static void subscribe(struct mosquitto *m, const char *filter) {
	must(mosquitto_subscribe(m, NULL, filter, qos), "subscribe");
	for (long want = subscribed + 1; subscribed < want;) turn(&m, 1);
}

// publish sends n messages from clients[0], at most window of which are
// unacknowledged or, at QoS 0 when they come back, not received.
static void publish(struct mosquitto **clients, int count, long n, bool gated) {
	long acks = acked, got = received;
	for (long i = 0; i < n; i++) {
		while (mosquitto_want_write(clients[0]) || (qos > 0 && i - (acked - acks) >= window) ||
		       (gated && i - (received - got) >= window))
			turn(clients, count);
		must(mosquitto_publish(clients[0], NULL, topic, payload, message, qos, false), "publish");
	}
	while (acked - acks < n || mosquitto_want_write(clients[0])) turn(clients, count);
}

static long long cpu(void) {
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000000LL + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000LL;
}

static long long field(const char *file, const char *name) {
	char line[256];
	long long value = 0;
	FILE *f = fopen(file, "r");
	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, name, strlen(name)) == 0) value = atoll(line + strlen(name));
	if (f) fclose(f);
	return value;
}

static void burst(void) {
	struct mosquitto *m = connect_one("burst");
	subscribe(m, topic);
	long long began = cpu();
	long want = received + burst_size;
	publish(&m, 1, burst_size, false);
	while (received < want) turn(&m, 1);
	burst_cpu += cpu() - began;
	mosquitto_disconnect(m);
	mosquitto_destroy(m);
}

static void run(long n) {
	struct mosquitto *both[2] = {publisher, subscriber};
	long want = received + n;
	if (strcmp(work, "publish") == 0) {
		publish(&publisher, 1, n, false);
	} else if (strcmp(work, "receive") == 0) {
		char filter[64];
		snprintf(filter, sizeof filter, "flood/%d/%ld", payload, n);
		subscribe(subscriber, filter);
		while (received < want) turn(&subscriber, 1);
	} else if (strcmp(work, "pair") == 0) {
		publish(both, 2, n, qos == 0);
		while (received < want) turn(both, 2);
	} else if (strcmp(work, "burst") == 0) {
		for (long i = 0; i < n; i++) burst();
	} else if (strcmp(work, "connect") == 0) {
		for (long i = 0; i < n && idle_count < max_clients; i++) {
			char id[32];
			snprintf(id, sizeof id, "c%d", idle_count);
			idle[idle_count] = connect_one(id);
			idle_count++;
		}
	} else {
		fail("work %s is unknown", work);
	}
}

static void parse(const char *arg) {
	if (sscanf(arg, "work=%31s", work) == 1) return;
	if (sscanf(arg, "ca=%4095s", ca) == 1) return;
	if (sscanf(arg, "addr=%255[^:]:%d", host, &port) == 2) return;
	if (sscanf(arg, "qos=%d", &qos) == 1) return;
	if (sscanf(arg, "payload=%d", &payload) == 1) return;
	sscanf(arg, "window=%d", &window);
}

int main(int argc, char **argv) {
	char line[64];
	int major, minor, revision;
	setvbuf(stdout, NULL, _IOLBF, 0);
	mosquitto_lib_init();
	for (int i = 1; i < argc; i++) parse(argv[i]);
	message = calloc(1, payload + 1);
	bool pair = strcmp(work, "pair") == 0;
	if (pair || strcmp(work, "publish") == 0) publisher = connect_one("pub");
	if (pair || strcmp(work, "receive") == 0) subscriber = connect_one("sub");
	if (pair) subscribe(subscriber, topic);
	mosquitto_lib_version(&major, &minor, &revision);
	printf("ready %d.%d.%d\n", major, minor, revision);
	while (fgets(line, sizeof line, stdin)) {
		if (strncmp(line, "run ", 4) == 0) {
			run(atol(line + 4));
			printf("done\n");
		} else {
			long long used = strcmp(work, "burst") == 0 ? burst_cpu : cpu();
			printf("usage %lld %lld %lld %lld %ld\n", used, field("/proc/self/io", "syscw:"), field("/proc/self/io", "syscr:"),
			       field("/proc/self/status", "VmRSS:") * 1024, received);
		}
	}
	return 0;
}
