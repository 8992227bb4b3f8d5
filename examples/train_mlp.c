/* SPDX-License-Identifier: Apache-2.0 */
/* train_mlp.c - data-parallel training of a small network that reads digits.
 *
 *     ctrun --nproc-per-node=4 build/bin/train_mlp
 *
 *     epoch 1: loss 1.434350445, 83.2 % of the test's digits are read
 *     epoch 2: loss 0.432211018, 94.1 % of the test's digits are read
 *     ...
 *     epoch 6: loss 0.077055739, 97.8 % of the test's digits are read
 *
 *     ctrun --nproc-per-node=4 --max-restarts=1 build/bin/train_mlp --checkpoint=digits --kill=2,3
 *
 *     --data=DIR          read MNIST's four files (train-images-idx3-ubyte ...) instead of drawing
 *                         digits
 *     --epochs=N          train for N epochs (6)
 *     --checkpoint=FILE   write FILE after each epoch; resume from FILE if it exists
 *     --kill=RANK,EPOCH   kill RANK in EPOCH of the first start, as an example of a failure
 *
 * The network has 784 inputs, 64 hidden units (ReLU) and 10 outputs (softmax).  Each step takes a
 * batch of 64 digits; each of up to 8 ranks computes the gradient of its part, and an all-reduce
 * adds up the gradients.  The gradient is cut into buckets, in the order in which the backward pass
 * computes them.  While one bucket is all-reduced (ct_all_reduce() with a work), the next is
 * computed.
 *
 * The loss is the same bit for bit on 1, 2, 4 and 8 ranks.  Sums of floats depend on their order,
 * so a batch is cut into 8 shards.  The gradient of a shard is computed in the same order on
 * whichever rank.  The shards are added up as 64-bit integers (fixed point), so their order does
 * not matter. */
#include <ct.h>

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 28, IN = SIDE * SIDE, HIDDEN = 64, OUT = 10 };
enum { BATCH = 64, SHARDS = 8, SHARD = BATCH / SHARDS };
enum { DRAWN = 4096, DRAWN_TESTS = 1024 };
enum { BUCKETS = 3, HALF = HIDDEN / 2 };

#define RATE 0.15f
#define FIXED 0x1p30 /* of a gradient's fixed point */

struct digits {
    unsigned char *pixels, *labels; /* IN a digit */
    int count;
};

/* In the order of the buckets: what the backward pass has first comes first. */
struct network {
    float w2[OUT][HIDDEN], b2[OUT];
    float w1[HIDDEN][IN], b1[HIDDEN];
};

/* What a shard's forward pass leaves for its backward pass. */
struct shard {
    float in[SHARD][IN], hidden[SHARD][HIDDEN];
    float delta2[SHARD][OUT], delta1[SHARD][HIDDEN]; /* of the loss by what goes into a unit */
};

struct bucket {
    float *values, *biases; /* of the network */
    int units, width;
    int64_t *sum; /* units * (width + 1): a unit's weights, then its bias */
    ct_work *work;
};

struct training {
    struct network network;
    struct digits train, test;
    struct shard *shards; /* those of this rank */
    int count;            /* how many */
    struct bucket buckets[BUCKETS];
    int64_t loss; /* of an epoch, fixed point */
    int *order;   /* of the digits in this epoch */
};

static void check(ct_status status)
{
    if (status == CT_OK)
        return;
    fprintf(stderr, "train_mlp: rank %d: %s\n", ct_rank(CT_WORLD), ct_last_error());
    exit(1);
}

static void fail(const char *what)
{
    fprintf(stderr, "train_mlp: rank %d: ", ct_rank(CT_WORLD));
    perror(what);
    exit(1);
}

static void *memory(size_t count, size_t size)
{
    void *all = calloc(count, size);

    if (!all)
        fail("calloc");
    return all;
}

/* ---- Digits ------------------------------------------------------------------------- */

static unsigned draw(unsigned *state, unsigned below)
{
    *state = *state * 1664525u + 1013904223u;
    return (unsigned)((uint64_t)(*state >> 4) * below >> 28);
}

/* Five columns by seven rows, each digit enlarged, slanted, moved and spoilt. */
static void draw_digit(unsigned char *pixels, int digit, unsigned *state)
{
    static const unsigned char font[OUT][7] = {
        { 14, 17, 19, 21, 25, 17, 14 }, { 4, 12, 4, 4, 4, 4, 14 },  { 14, 17, 1, 2, 4, 8, 31 },
        { 31, 2, 4, 2, 1, 17, 14 },     { 2, 6, 10, 18, 31, 2, 2 }, { 31, 16, 30, 1, 1, 17, 14 },
        { 6, 8, 16, 30, 17, 17, 14 },   { 31, 1, 2, 4, 8, 8, 8 },   { 14, 17, 17, 14, 17, 17, 14 },
        { 14, 17, 17, 15, 1, 2, 12 },
    };
    const int high = 17 + (int)draw(state, 7), wide = 12 + (int)draw(state, 6);
    const int left = (SIDE - wide) / 2 + (int)draw(state, 5) - 2,
              top = (SIDE - high) / 2 + (int)draw(state, 5) - 2;
    const int slant = (int)draw(state, 9) - 4, ink = 150 + (int)draw(state, 106);

    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            const int row = y - top, column = x - left - slant * (y - SIDE / 2) / SIDE;
            const int inside = row >= 0 && row < high && column >= 0 && column < wide;
            const int is_ink = inside && font[digit][row * 7 / high] >> (4 - column * 5 / wide) & 1;
            const int noise = draw(state, 30) == 0 ? (int)draw(state, 200) : (int)draw(state, 40);

            pixels[y * SIDE + x] =
                (unsigned char)(is_ink ? (draw(state, 10) ? ink : noise) : noise);
        }
}

static struct digits draw_digits(int count, unsigned seed)
{
    struct digits all = { memory((size_t)count, IN), memory((size_t)count, 1), count };

    for (int i = 0; i < count; i++) {
        all.labels[i] = (unsigned char)draw(&seed, OUT);
        draw_digit(all.pixels + (size_t)i * IN, all.labels[i], &seed);
    }
    return all;
}

/* An IDX file: a magic number, sizes, bytes.  Returns the bytes, *count things of `each`. */
static unsigned char *read_idx(const char *folder, const char *name, int dimensions, int *count,
                               size_t each)
{
    unsigned char head[16], *bytes;
    char path[4096];
    FILE *in;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!(in = fopen(path, "rb")) || fread(head, 4 + 4 * (size_t)dimensions, 1, in) != 1)
        fail(path);
    if (head[2] != 8 || head[3] != dimensions
        || (dimensions == 3 && (head[11] != SIDE || head[15] != SIDE))) {
        fprintf(stderr, "train_mlp: %s is no IDX file of bytes with digits of 28 x 28\n", path);
        exit(1);
    }
    *count = head[4] << 24 | head[5] << 16 | head[6] << 8 | head[7];
    bytes = memory((size_t)*count, each);
    errno = ENODATA; /* the file ends too early, unless fread() says otherwise */
    if (fread(bytes, each, (size_t)*count, in) != (size_t)*count)
        fail(path);
    fclose(in);
    return bytes;
}

static struct digits read_digits(const char *folder, const char *images, const char *labels)
{
    struct digits all;
    int count;

    all.pixels = read_idx(folder, images, 3, &all.count, IN);
    all.labels = read_idx(folder, labels, 1, &count, 1);
    for (int i = 0; i < count; i++)
        if (all.labels[i] >= OUT) {
            fprintf(stderr, "train_mlp: %s/%s: the label %d is no digit\n", folder, labels,
                    all.labels[i]);
            exit(1);
        }
    if (count != all.count) {
        fprintf(stderr, "train_mlp: %s: %d labels for %d digits\n", folder, count, all.count);
        exit(1);
    }
    return all;
}

/* ---- The network ---------------------------------------------------------------------- */

static void network_begin(struct network *net)
{
    unsigned seed = 1;

    for (int h = 0; h < HIDDEN; h++)
        for (int i = 0; i < IN; i++)
            net->w1[h][i] = ((float)draw(&seed, 2001) / 1000 - 1) * 0.06f;
    for (int o = 0; o < OUT; o++)
        for (int h = 0; h < HIDDEN; h++)
            net->w2[o][h] = ((float)draw(&seed, 2001) / 1000 - 1) * 0.2f;
}

/* The outputs of one digit as probabilities. */
static void forward(const struct network *net, const unsigned char *pixels, float *in,
                    float *hidden, float *out)
{
    float most = -INFINITY, sum = 0;

    for (int i = 0; i < IN; i++)
        in[i] = (float)pixels[i] / 255;
    for (int h = 0; h < HIDDEN; h++) {
        hidden[h] = net->b1[h];
        for (int i = 0; i < IN; i++)
            hidden[h] += net->w1[h][i] * in[i];
        hidden[h] = fmaxf(hidden[h], 0);
    }
    for (int o = 0; o < OUT; o++) {
        out[o] = net->b2[o];
        for (int h = 0; h < HIDDEN; h++)
            out[o] += net->w2[o][h] * hidden[h];
        most = fmaxf(most, out[o]);
    }
    for (int o = 0; o < OUT; o++)
        sum += out[o] = expf(out[o] - most);
    for (int o = 0; o < OUT; o++)
        out[o] /= sum;
}

/* Forward, and backward as far as to the deltas.  Adds to the loss. */
static void shard_begin(struct training *t, struct shard *shard, int first)
{
    for (int s = 0; s < SHARD; s++) {
        const int digit = t->order[first + s], label = t->train.labels[digit];
        float *delta2 = shard->delta2[s];

        forward(&t->network, t->train.pixels + (size_t)digit * IN, shard->in[s], shard->hidden[s],
                delta2);
        t->loss += llrint(-log((double)delta2[label] + 1e-30) * FIXED);
        delta2[label] -= 1;
        for (int h = 0; h < HIDDEN; h++) {
            shard->delta1[s][h] = 0;
            for (int o = 0; o < OUT && shard->hidden[s][h] > 0; o++)
                shard->delta1[s][h] += delta2[o] * t->network.w2[o][h];
        }
    }
}

/* Adds the gradient of one unit's weights and bias: over the digits of a shard as floats in one
 * order, over shards as integers. */
static void unit_gradient(int64_t *sum, const float *delta, int delta_stride, const float *inputs,
                          int width)
{
    float bias = 0;

    for (int i = 0; i < width; i++) {
        float gradient = 0;

        for (int s = 0; s < SHARD; s++)
            gradient += delta[s * delta_stride] * inputs[s * width + i];
        sum[i] += llrint(gradient * FIXED);
    }
    for (int s = 0; s < SHARD; s++)
        bias += delta[s * delta_stride];
    sum[width] += llrint(bias * FIXED);
}

/* ---- One step ------------------------------------------------------------------------- */

/* Bucket 0: the output layer.  1, 2: halves of the hidden layer. */
static void buckets_open(struct training *t)
{
    struct network *net = &t->network;

    t->buckets[0] = (struct bucket){ net->w2[0], net->b2, OUT, HIDDEN, NULL, NULL };
    t->buckets[1] = (struct bucket){ net->w1[0], net->b1, HALF, IN, NULL, NULL };
    t->buckets[2] = (struct bucket){ net->w1[HALF], net->b1 + HALF, HALF, IN, NULL, NULL };
    for (int i = 0; i < BUCKETS; i++)
        t->buckets[i].sum =
            memory((size_t)(t->buckets[i].units * (t->buckets[i].width + 1)), sizeof(int64_t));
}

static void bucket_start(struct training *t, int number)
{
    struct bucket *b = &t->buckets[number];
    const size_t count = (size_t)(b->units * (b->width + 1));

    memset(b->sum, 0, count * sizeof *b->sum);
    for (int i = 0; i < t->count; i++) {
        const struct shard *shard = &t->shards[i];

        for (int u = 0; u < b->units; u++)
            if (number == 0)
                unit_gradient(b->sum + u * (b->width + 1), shard->delta2[0] + u, OUT,
                              shard->hidden[0], HIDDEN);
            else
                unit_gradient(b->sum + u * (b->width + 1),
                              shard->delta1[0] + (number - 1) * HALF + u, HIDDEN, shard->in[0], IN);
    }
    check(ct_all_reduce(CT_WORLD, b->sum, b->sum, count, CT_I64, CT_SUM, &b->work));
}

static void bucket_apply(struct bucket *b)
{
    check(ct_wait(b->work));
    for (int u = 0; u < b->units; u++) {
        const int64_t *sum = b->sum + u * (b->width + 1);

        for (int i = 0; i < b->width; i++)
            b->values[u * b->width + i] -= RATE * (float)((double)sum[i] / (FIXED * BATCH));
        b->biases[u] -= RATE * (float)((double)sum[b->width] / (FIXED * BATCH));
    }
}

static void step(struct training *t, int first)
{
    for (int i = 0; i < t->count; i++)
        shard_begin(t, &t->shards[i], first + (ct_rank(CT_WORLD) * t->count + i) * SHARD);
    for (int i = 0; i < BUCKETS; i++)
        bucket_start(t, i); /* while the last one travels */
    for (int i = 0; i < BUCKETS; i++)
        bucket_apply(&t->buckets[i]);
}

/* ---- Epochs ----------------------------------------------------------------------------- */

/* The same order on all ranks. */
static void shuffle(struct training *t, unsigned seed)
{
    for (int i = 0; i < t->train.count; i++)
        t->order[i] = i;
    for (int i = t->train.count - 1; i > 0; i--) {
        const int other = (int)draw(&seed, (unsigned)i + 1), kept = t->order[i];

        t->order[i] = t->order[other];
        t->order[other] = kept;
    }
}

/* Each rank reads every size-th digit. */
static double accuracy(const struct training *t)
{
    float in[IN], hidden[HIDDEN], out[OUT];
    int64_t right = 0;

    for (int i = ct_rank(CT_WORLD); i < t->test.count; i += ct_size(CT_WORLD)) {
        int best = 0;

        forward(&t->network, t->test.pixels + (size_t)i * IN, in, hidden, out);
        for (int o = 1; o < OUT; o++)
            best = out[o] > out[best] ? o : best;
        right += best == t->test.labels[i];
    }
    check(ct_all_reduce(CT_WORLD, &right, &right, 1, CT_I64, CT_SUM, NULL));
    return 100.0 * (double)right / t->test.count;
}

static void run_epoch(struct training *t, int epoch)
{
    const int steps = t->train.count / BATCH;
    double percent;

    shuffle(t, (unsigned)epoch);
    t->loss = 0;
    for (int i = 0; i < steps; i++)
        step(t, i * BATCH);
    check(ct_all_reduce(CT_WORLD, &t->loss, &t->loss, 1, CT_I64, CT_SUM, NULL));
    percent = accuracy(t);
    if (ct_rank(CT_WORLD) == 0)
        printf("epoch %d: loss %.9f, %.1f %% of the test's digits are read\n", epoch,
               (double)t->loss / FIXED / (steps * BATCH), percent);
    fflush(stdout);
}

/* ---- Checkpoints: rank 0's ---------------------------------------------------------------- */

struct checkpoint {
    char magic[8];
    int32_t epoch; /* the last one that is in it */
    struct network network;
};
static const char magic[8] = "ct mlp1";

/* A new file, which then takes the old one's place: a death leaves one or the other. */
static void save(const char *path, const struct network *net, int epoch)
{
    struct checkpoint *c = memory(1, sizeof *c);
    char new[4096];
    FILE *out;

    memcpy(c->magic, magic, sizeof magic);
    c->epoch = epoch;
    c->network = *net;
    snprintf(new, sizeof new, "%s.new", path);
    if (!(out = fopen(new, "wb")) || fwrite(c, sizeof *c, 1, out) != 1 || fflush(out) != 0
        || fsync(fileno(out)) < 0 || fclose(out) != 0 || rename(new, path) < 0)
        fail(new);
    free(c);
}

/* Returns the epoch from which to go on, on all ranks. */
static int load(const char *path, struct network *net)
{
    struct checkpoint *c = memory(1, sizeof *c);
    FILE *in = path && ct_rank(CT_WORLD) == 0 ? fopen(path, "rb") : NULL;
    int32_t epoch = 0;

    if (path && ct_rank(CT_WORLD) == 0 && !in && errno != ENOENT)
        fail(path); /* it would be overwritten */

    if (in && (fread(c, sizeof *c, 1, in) != 1 || memcmp(c->magic, magic, sizeof magic) != 0)) {
        fprintf(stderr, "train_mlp: %s is no checkpoint of this program\n", path);
        exit(1);
    }
    if (in) {
        *net = c->network;
        epoch = c->epoch;
        fclose(in);
    }
    free(c);
    check(ct_broadcast(CT_WORLD, &epoch, 1, CT_I32, 0, NULL));
    check(ct_broadcast(CT_WORLD, net, sizeof *net / sizeof(float), CT_F32, 0, NULL));
    if (epoch && ct_rank(CT_WORLD) == 0)
        printf("goes on behind epoch %d\n", (int)epoch);
    return epoch;
}

int main(int argc, char **argv)
{
    static const struct option known[] = { { "data", required_argument, NULL, 'd' },
                                           { "epochs", required_argument, NULL, 'e' },
                                           { "checkpoint", required_argument, NULL, 'c' },
                                           { "kill", required_argument, NULL, 'k' },
                                           { NULL, 0, NULL, 0 } };
    static struct training t;
    const char *data = NULL, *path = NULL;
    int epochs = 6, victim = -1, last = 0, letter;

    while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1)
        if (letter == 'd')
            data = optarg;
        else if (letter == 'e')
            epochs = atoi(optarg);
        else if (letter == 'c')
            path = optarg;
        else if (letter != 'k' || sscanf(optarg, "%d,%d", &victim, &last) != 2) {
            fprintf(stderr, "usage: train_mlp [--data=DIR] [--epochs=N] [--checkpoint=FILE] "
                            "[--kill=RANK,EPOCH]\n");
            return 2;
        }
    check(ct_init_process_group(NULL));
    if (SHARDS % ct_size(CT_WORLD)) {
        fprintf(stderr, "train_mlp: 1, 2, 4 or 8 ranks, not %d\n", ct_size(CT_WORLD));
        return 1;
    }
    t.train = data ? read_digits(data, "train-images-idx3-ubyte", "train-labels-idx1-ubyte")
                   : draw_digits(DRAWN, 11);
    t.test = data ? read_digits(data, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
                  : draw_digits(DRAWN_TESTS, 12);
    t.count = SHARDS / ct_size(CT_WORLD);
    t.shards = memory((size_t)t.count, sizeof *t.shards);
    t.order = memory((size_t)t.train.count, sizeof *t.order);
    buckets_open(&t);
    network_begin(&t.network);
    for (int epoch = load(path, &t.network) + 1; epoch <= epochs; epoch++) {
        if (epoch == last && ct_rank(CT_WORLD) == victim && ct_restart_count() == 0)
            raise(SIGKILL);
        run_epoch(&t, epoch);
        if (path && ct_rank(CT_WORLD) == 0)
            save(path, &t.network, epoch);
    }
    for (int i = 0; i < BUCKETS; i++)
        free(t.buckets[i].sum);
    free(t.shards);
    free(t.order);
    free(t.train.pixels);
    free(t.train.labels);
    free(t.test.pixels);
    free(t.test.labels);
    check(ct_destroy_process_group(CT_WORLD));
    return 0;
}
