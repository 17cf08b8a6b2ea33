package org.sparkfp4.convert;

import java.io.Serializable;

/**
 * What every task of a run must know beside the plan.
 *
 * @param output the output's folder
 * @param commit how files get their names: auto, rename or direct
 * @param run the run's own id
 */
record TaskSettings(String output, String commit, String run) implements Serializable {}
