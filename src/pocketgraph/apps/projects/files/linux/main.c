/* Says what pictures show, or runs the model on numbers.

       bin/@small@ [-t TOP] [-n RUNS] [-w FILE.weights] INPUT...

   A model of pictures takes any number of them: binary .ppm (.pgm where it takes one channel), and - for a stream of them
   on the standard input. Another model takes one file for each of its inputs, with its elements as they lie in memory,
   little-endian. -n runs the model so often and prints the times. */
#include "facts.h"
#include "model_common.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

static int top = 3, runs = 1;

static double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1000.0 * (double)now.tv_sec + (double)now.tv_nsec / 1e6;
}

static size_t elements(const model_tensor *about) {
    size_t count = 1;
    for (int d = 0; d < about->rank; d++) count *= (size_t)about->shape[d];
    return count;
}

static float number(const model_tensor *about, const void *from, size_t at) {
    const float scale = about->scale != 0 ? about->scale : 1;
    switch (about->type) {
        case MODEL_FLOAT: return ((const float *)from)[at];
        case MODEL_INT8: return scale * (float)(((const int8_t *)from)[at] - about->zero_point);
        case MODEL_UINT8:
        case MODEL_BOOL: return scale * (float)(((const uint8_t *)from)[at] - about->zero_point);
        case MODEL_INT32: return (float)((const int32_t *)from)[at];
        case MODEL_INT64: return (float)((const int64_t *)from)[at];
        default: return 0;
    }
}

static void show_classes(const model_tensor *about, const void *from) {
    const size_t count = elements(about);
    float below = INFINITY;
    size_t last = 0;
    for (int rank = 0; rank < top && (size_t)rank < count; rank++) { /* the best one that has not been shown */
        size_t best = count;
        const char *label;
        for (size_t i = 0; i < count; i++) {
            const float value = number(about, from, i);
            const int is_left = rank == 0 || value < below || (value == below && i > last);
            if (is_left && (best == count || value > number(about, from, best))) best = i;
        }
        if (best == count) return;
        below = number(about, from, best);
        last = best;
        label = best + 1 < sizeof labels / sizeof *labels ? labels[best] : 0;
        if (label)
            printf("  %8.4f  %s\n", (double)below, label);
        else
            printf("  %8.4f  class %lu\n", (double)below, (unsigned long)best);
    }
}

static void run(model *it, const char *input) {
    double fastest = INFINITY, sum = 0;
    for (int i = 0; i < runs; i++) {
        const double begun = milliseconds();
        double taken;
        model_invoke(it);
        taken = milliseconds() - begun;
        sum += taken;
        if (taken < fastest) fastest = taken;
    }
    printf("%s: %.2f ms", input, sum / runs);
    if (runs > 1) printf(" on average, %.2f at best", fastest);
    printf("\n");
    for (int i = 0; i < MODEL_OUTPUTS; i++) {
        const model_tensor *about = &model_outputs[i];
        if (i == 0 && GIVES_SCORES) {
            show_classes(about, model_output(it, i));
            continue;
        }
        printf("  %s:", about->name);
        for (size_t at = 0; at < elements(about) && at < 8; at++)
            printf(" %g", (double)number(about, model_output(it, i), at));
        printf("%s\n", elements(about) > 8 ? " ..." : "");
    }
    fflush(stdout);
}

static int header_number(FILE *file) {
    int value = 0, letter = fgetc(file);
    while (letter == '#' || letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r') {
        while (letter == '#' && (letter = fgetc(file)) != '\n' && letter != EOF) letter = '#';
        letter = fgetc(file);
    }
    for (; letter >= '0' && letter <= '9' && value < 100000; letter = fgetc(file)) value = 10 * value + letter - '0';
    return value;
}

static void put(const model_tensor *about, void *to, size_t at, float value) {
    const float code = about->scale != 0 ? rintf(value / about->scale) + (float)about->zero_point : rintf(value);
    if (about->type == MODEL_FLOAT)
        ((float *)to)[at] = value;
    else if (about->type == MODEL_INT8)
        ((int8_t *)to)[at] = (int8_t)(code < -128 ? -128 : code > 127 ? 127 : code);
    else
        ((uint8_t *)to)[at] = (uint8_t)(code < 0 ? 0 : code > 255 ? 255 : code);
}

/* The middle square of a picture; each pixel of the input is the mean of the rectangle that it covers. */
static void fit(const unsigned char *pixels, int width, int height, const model_tensor *about, void *to) {
    const int rows = about->shape[1], columns = about->shape[2], channels = about->shape[3];
    const int side = width < height ? width : height;
    const int from_left = (width - side) / 2, from_top = (height - side) / 2;
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++) {
            const int above = from_top + (int)((long long)y * side / rows);
            const int before = from_left + (int)((long long)x * side / columns);
            int below = from_top + (int)((long long)(y + 1) * side / rows);
            int behind = from_left + (int)((long long)(x + 1) * side / columns);
            if (below <= above) below = above + 1;
            if (behind <= before) behind = before + 1;
            for (int c = 0; c < channels; c++) {
                float sum = 0;
                for (int i = above; i < below; i++)
                    for (int j = before; j < behind; j++)
                        sum += pixels[((size_t)i * (size_t)width + (size_t)j) * (size_t)channels + (size_t)c];
                sum /= (float)(below - above) * (float)(behind - before);
                put(about, to, ((size_t)y * (size_t)columns + (size_t)x) * (size_t)channels + (size_t)c,
                    (sum - mean[c]) / deviation[c]);
            }
        }
}

/* 1: a picture was read; 0: there are no more; -1: this is none. */
static int read_picture(FILE *file, const model_tensor *about, void *to) {
    const int channels = about->shape[3];
    const int letter = fgetc(file);
    int width, height, done = -1;
    unsigned char *pixels;
    size_t bytes;
    if (letter == EOF) return 0;
    if (letter != 'P' || fgetc(file) != (channels == 3 ? '6' : '5')) return -1;
    width = header_number(file);
    height = header_number(file);
    if (header_number(file) != 255 || width < 1 || height < 1 || (size_t)width * (size_t)height >= (size_t)1 << 28)
        return -1;
    bytes = (size_t)width * (size_t)height * (size_t)channels;
    pixels = malloc(bytes);
    if (pixels && fread(pixels, 1, bytes, file) == bytes) {
        fit(pixels, width, height, about, to);
        done = 1;
    }
    free(pixels);
    return done;
}

static int run_pictures(model *it, const char *path) {
    const int is_stream = strcmp(path, "-") == 0;
    FILE *file = is_stream ? stdin : fopen(path, "rb");
    int got = -1, count = 0;
    if (file) {
        while ((got = read_picture(file, &model_inputs[0], model_input(it, 0))) > 0) {
            run(it, path);
            count++;
            if (!is_stream) break;
        }
        if (!is_stream) fclose(file);
    }
    if (got >= 0 && count > 0) return 1;
    fprintf(stderr, "%s: not a binary %s of 8 bits\n", path, CHANNELS == 1 ? ".pgm" : ".ppm");
    return 0;
}

/* Where the weights are, when they are a file: beside the program, or where `make install` puts them. */
static const char *found_weights(char *place, size_t size) {
    static const char *const places[] = {"../model/model.weights", "../share/@small@/model.weights"};
    const ssize_t length = readlink("/proc/self/exe", place, size - 64);
    size_t folder = length > 0 ? (size_t)length : 0;
    while (folder > 0 && place[folder - 1] != '/') folder--;
    for (int i = 0; i < 2; i++) {
        strcpy(place + folder, places[i]);
        if (access(place, R_OK) == 0) return place;
    }
    return "model/model.weights";
}

int main(int count, char **words) {
    char place[4096];
    const char *weights = found_weights(place, sizeof place);
    void *memory = 0;
    model it;
    int option, done = 1;
    memset(&it, 0, sizeof it);
    while ((option = getopt(count, words, "t:n:w:h")) != -1) {
        if (option == 't') top = atoi(optarg);
        if (option == 'n') runs = atoi(optarg);
        if (option == 'w') weights = optarg;
        if (option == 'h' || option == '?' || runs < 1 || top < 1) {
            fprintf(stderr, "%s [-t TOP] [-n RUNS] [-w FILE.weights] %s\n", words[0],
                    TAKES_PICTURES ? "PICTURE.ppm... or - for a stream" : "a file for each input");
            return option == 'h' ? 0 : 2;
        }
    }
    words += optind;
    count -= optind;
    if (count < 1 || (!TAKES_PICTURES && count != MODEL_INPUTS)) {
        fprintf(stderr, TAKES_PICTURES ? "give pictures, or - for a stream of them; -h tells the options\n"
                                       : "give a file for each input; -h tells the options\n");
        return 2;
    }
    if (!set_up(&it, &memory, weights)) return 1;
    if (TAKES_PICTURES) {
        for (int i = 0; i < count; i++) {
            const size_t length = strlen(words[i]);
            if (length > 4 && strcmp(words[i] + length - 4, ".bin") == 0) {
                const int got = read_file(words[i], model_input(&it, 0), model_inputs[0].bytes);
                if (got) run(&it, words[i]);
                done = got && done;
            } else {
                done = run_pictures(&it, words[i]) && done;
            }
        }
    } else {
        for (int i = 0; i < count && done; i++) done = read_file(words[i], model_input(&it, i), model_inputs[i].bytes);
        if (done) run(&it, words[0]);
    }
    model_release(&it);
    free(memory);
    return done ? 0 : 1;
}
