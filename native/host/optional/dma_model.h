/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside a hosted kernel: engines that dcbm may find, and what offload.c asks of them. */
#ifndef REAM_DMA_MODEL_H
#define REAM_DMA_MODEL_H

#include <linux/types.h>
#include "offload.h"

struct device;
struct dma_device;

/*
 * dma_engine.c: which engine dcbm finds; of that of threads, how much a descriptor
 * may copy, and whether its driver says that it reports errors.
 */
void dma_engine_choose(const struct offload_request *request);
void dma_engine_limit(unsigned int bytes);
void dma_engine_report(bool reports_errors);

/* What is mapped for it; of no interest, and not counted, where nothing is watched. */
long dma_engine_nr_mapped(void);

/* dma_model.c: the model, behind @dev. */
struct dma_device *dma_model(struct device *dev, const struct offload_request *request);

/* Whether copies are put off, or done as soon as they are completed. */
void dma_model_defers(bool defers);

/* Move the bytes of all that the model has completed. */
void dma_model_settle(void);

/* Whether the copy of a frame, or to it, is put off. */
bool dma_model_has(unsigned long pfn);

/* Static in the modules; see an experiment's file `objects`. */
int dcbm_init(void);
int swdma_init(void);
int mtcopy_init(void);

#endif
