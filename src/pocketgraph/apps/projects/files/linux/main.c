/* Says what pictures show, or runs the model on numbers.

       bin/@small@ [-t TOP] [-n RUNS] [-w FILE.weights] INPUT...

   A model of pictures takes any number of them: binary .ppm (.pgm where it takes one channel), and - for a stream of them
   on the standard input. Another model takes one file for each of its inputs, with its elements as they lie in memory,
   little-endian. -n runs the model so often and prints the times. */
#include "facts.h"
#include "model_common.h"
#include "model_pictures.h"

#include <time.h>
#include <unistd.h>

static const picture_feed feed = {mean, deviation, (int)(sizeof mean / sizeof *mean)};
static int top = 3, runs = 1;

static double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1000.0 * (double)now.tv_sec + (double)now.tv_nsec / 1e6;
}

static const size_t label_count = sizeof labels / sizeof *labels - 1;

static void show_class(size_t at, double score) {
    if (at < label_count)
        printf("  %8.4f  %s\n", score, labels[at]);
    else
        printf("  %8.4f  class %lu\n", score, (unsigned long)at);
}

static void show_classes(const model_tensor *about, const void *from) {
    const size_t count = elements(about);
    size_t best = count;
    if (count == 1 && label_count == 2) { /* the share of the second of two classes */
        const double share = (double)element(about, from, 0);
        const size_t first = share > 0.5;
        show_class(first, first ? share : 1 - share);
        if (top > 1) show_class(1 - first, first ? 1 - share : share);
        return;
    }
    for (int rank = 0; rank < top && (best = next_largest(about, from, best)) < count; rank++)
        show_class(best, (double)element(about, from, best));
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
            printf(" %g", (double)element(about, model_output(it, i), at));
        printf("%s\n", elements(about) > 8 ? " ..." : "");
    }
    fflush(stdout);
}

static int run_pictures(model *it, const char *path) {
    const int is_stream = strcmp(path, "-") == 0;
    FILE *file = is_stream ? stdin : fopen(path, "rb");
    int got = -1, count = 0;
    if (file) {
        while ((got = read_picture(file, &model_inputs[0], feed, model_input(it, 0))) > 0) {
            run(it, path);
            count++;
            if (!is_stream) break;
        }
        if (!is_stream) fclose(file);
    }
    if (got >= 0 && count > 0) return 1;
    if (!file)
        fprintf(stderr, "%s: cannot be opened\n", path);
    else
        fprintf(stderr, "%s: not a binary %s of 8 bits, which `ffmpeg -i photo.jpg photo%s` makes\n", path,
                CHANNELS == 1 ? ".pgm" : ".ppm", CHANNELS == 1 ? ".pgm" : ".ppm");
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
