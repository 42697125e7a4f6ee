/* What the program knows of the model beside what model.h says. */
#ifndef FACTS_H
#define FACTS_H

#define TAKES_PICTURES @takes_pictures@
#define GIVES_SCORES @gives_scores@
#define CHANNELS @channels@

/* How values of pictures, from 0 to 255, are fed: (value - mean) / deviation, by channel. */
static const float mean[] = {@mean@}, deviation[] = {@deviation@};
static const char *const labels[] = {
@labels@    0, /* the end */
};

#endif
