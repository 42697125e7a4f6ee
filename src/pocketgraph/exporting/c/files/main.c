/* Runs the model on files and shows what comes out.

       @name@_main [-o OUTPUT] [-n RUNS] [-w FILE.weights] INPUT...

   One INPUT for each input of the model: a picture (.ppm with three channels, .pgm with one; binary, 8 bits) where it
   takes one, of any size; else its elements as they lie in memory, little-endian. -o writes all outputs, one after
   another, as they lie in memory. -n runs the model so many times and prints the mean time. */
#include "@name@_common.h"
#include "@name@_pictures.h"

#include <time.h>

static const float mean[] = {@mean@}, deviation[] = {@deviation@};
static const picture_feed feed = {mean, deviation, @normalized_channels@};
static const int classes = @classes@; /* names of them; 0: unknown */
static const char *const class_names[] = {@class_names@0};

static int is_picture(const char *path) {
    const size_t length = strlen(path);
    return length > 4 && (strcmp(path + length - 4, ".ppm") == 0 || strcmp(path + length - 4, ".pgm") == 0);
}

static int read_input(const char *path, const @name@_tensor *about, void *to) {
    FILE *file;
    int got;
    if (!is_picture(path)) return read_file(path, to, about->bytes);
    file = fopen(path, "rb");
    got = file ? read_picture(file, about, feed, to) : -1;
    if (file) fclose(file);
    if (!file)
        fprintf(stderr, "%s: cannot be opened\n", path);
    else if (got < 1)
        fprintf(stderr, "%s: not a binary %s of 8 bits\n", path,
                about->rank == 4 && about->shape[3] == 1 ? ".pgm" : ".ppm");
    return got == 1;
}

static void show(const @name@_tensor *about, const void *from) {
    const size_t count = elements(about);
    size_t best = count;
    printf("%s, %lu elements\n", about->name, (unsigned long)count);
    for (int rank = 0; rank < 5 && (best = next_largest(about, from, best)) < count; rank++) {
        if (best < (size_t)classes)
            printf("%12g  %s\n", (double)element(about, from, best), class_names[best]);
        else
            printf("%12g  [%lu]\n", (double)element(about, from, best), (unsigned long)best);
    }
}

int main(int count, char **words) {
    const char *output = 0, *weights_path = "@name@.weights";
    int runs = 0, given = 0, done = 1;
    void *memory = 0;
    @name@ it = {0};
    clock_t begun;
    const char *inputs[@NAME@_INPUTS + 1] = {0};
    for (int i = 1; i < count; i++) {
        if (words[i][0] == '-' && words[i][1] && !words[i][2] && i + 1 < count && strchr("onw", words[i][1])) {
            const char *word = words[++i];
            if (words[i - 1][1] == 'o') output = word;
            if (words[i - 1][1] == 'n') runs = atoi(word);
            if (words[i - 1][1] == 'w') weights_path = word;
        } else if (given < @NAME@_INPUTS) {
            inputs[given++] = words[i];
        } else {
            given = -1;
            break;
        }
    }
    (void)weights_path;
    if (given != @NAME@_INPUTS) {
        fprintf(stderr, "%s [-o OUTPUT] [-n RUNS] [-w FILE.weights] and %d inputs\n", words[0], @NAME@_INPUTS);
        return 2;
    }
    if (!set_up(&it, &memory, weights_path)) return 1;
    for (int i = 0; done && i < given; i++) done = read_input(inputs[i], &@name@_inputs[i], @name@_input(&it, i));
    if (done) {
        FILE *file = output ? fopen(output, "wb") : 0;
        begun = clock();
        for (int i = 0; i < (runs ? runs : 1); i++) @name@_invoke(&it);
        if (runs)
            printf("%.6f ms a run\n", 1000.0 * (double)(clock() - begun) / (double)CLOCKS_PER_SEC / (double)runs);
        for (int i = 0; i < @NAME@_OUTPUTS; i++) {
            const @name@_tensor *about = &@name@_outputs[i];
            if (file) done = done && fwrite(@name@_output(&it, i), 1, about->bytes, file) == about->bytes;
            if (!output) show(about, @name@_output(&it, i));
        }
        if (file) done = fclose(file) == 0 && done;
        if (output && (!file || !done)) {
            fprintf(stderr, "%s cannot be written\n", output);
            done = 0;
        }
    }
    @name@_release(&it);
    free(memory);
    return done ? 0 : 1;
}
