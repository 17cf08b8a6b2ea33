package org.sparkfp4.convert;

import java.io.Serializable;
import org.sparkfp4.kernels.KernelChoice;

/**
 * What every task of a run must know beside the plan.
 *
 * @param output the output's folder
 * @param commit how files get their names: auto, rename or direct
 * @param run the run's own id
 * @param kernels what arranges experts
 */
record TaskSettings(String output, String commit, String run, KernelChoice kernels) implements Serializable {}
